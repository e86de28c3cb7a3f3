"""Where instances keep what is no attribute, names that functions were given, texts with addresses, and refusals: as in plain execution."""
import pytest

import tenon


def outcome(call, *args):
    try:
        return call(*args)
    except Exception as error:
        return type(error), str(error)


class Guarded:
    @property
    def value(self):
        return self.__dict__["value"]

    @value.setter
    def value(self, new):
        raise AssertionError("nobody assigns it")


@pytest.mark.parametrize("key", ("value", 3))
def test_an_instance_holds_what_is_no_attribute(key):
    def run():
        made = Guarded()
        made.first = 1
        made.__dict__[key] = 2
        tenon.graph_break()
        return list(made.__dict__.items()), made

    compiled = tenon.compile(run)
    for _ in range(2):
        items, made = compiled()
        assert items == list(vars(made).items()) == [("first", 1), (key, 2)]


def test_a_generator_has_the_name_that_its_function_was_given():
    def run():
        def made():
            yield 1

        made.__name__, made.__qualname__ = "other", "Some.other"
        generator = made()
        return generator.__name__, generator.__qualname__, list(generator)

    compiled = tenon.compile(run)
    assert compiled() == run() == compiled() == ("other", "Some.other", [1])


def test_refusals_of_builtins_and_handlers():
    def handled(classes):
        try:
            raise KeyError(1)
        except classes:
            return 1

    def run():
        return outcome(vars, 1), outcome(handled, (5, KeyError)), outcome(handled, KeyError)

    compiled = tenon.compile(run)
    assert compiled() == run() == compiled()


def test_texts_that_hold_an_address():
    class Plain:
        pass

    def run():
        made = Plain()
        return format(made) == str(made) == f"{made}", format(made, "") == repr(made), outcome(format, made, "x")

    compiled = tenon.compile(run)
    assert compiled() == run() == compiled()


def test_operators_that_a_class_refuses():
    class Equal:
        def __eq__(self, other):
            return True

        def __add__(self, other):
            return NotImplemented

    class Refusing:
        __eq__ = __radd__ = __iadd__ = None

    class Below(Equal):
        __eq__ = None

    def added(left, right):
        left += right
        return left

    def run():
        pairs = [(Equal(), Refusing()), (Refusing(), Equal()), (Equal(), Below()), (Below(), Equal())]
        return [(outcome(lambda: a == b), outcome(lambda: a != b), outcome(lambda: a + b), outcome(added, a, b)) for a, b in pairs]

    compiled = tenon.compile(run)
    assert compiled() == run() == compiled()


def test_a_small_int_that_varies_is_one_object():
    def run(first, table):
        return first is table["first"], first is not table["other"], first is None

    compiled = tenon.compile(run)
    for number in range(4):
        table = {"first": number, "other": number + 1}
        assert compiled(number, table) == run(number, table) == (True, True, False)


def test_a_class_that_makes_no_exception_is_refused():
    def run():
        class Unmade(Exception):
            def __new__(cls, *args):
                return cls

        def generator():
            yield

        refused = generator()
        try:
            refused.throw(Unmade)
        except TypeError as error:
            return "should have returned an instance of BaseException" in str(error), list(refused)

    compiled = tenon.compile(run)
    assert compiled() == run() == compiled() == (True, [])


def test_a_function_keeps_the_builtins_that_it_was_made_with():
    def inner(x):
        return x * len((1, 2))

    def run(x):
        return inner(x)

    scope = globals()
    compiled, before = tenon.compile(run), scope["__builtins__"]
    scope["__builtins__"] = {"len": lambda items: 7}
    try:
        assert compiled(3) == run(3) == 6
    finally:
        scope["__builtins__"] = before


class Colliding:
    asked = 0

    def __eq__(self, other):
        Colliding.asked += 1
        return self is other

    def __hash__(self):
        return 24


def test_keys_are_compared_where_their_hashes_are_equal():
    held = {Colliding(): 1}

    def run():
        own = {Colliding(): 1}
        return [key in keys for keys in (held, own, set(own)) for key in (23, 24, "a")], Colliding.asked

    compiled = tenon.compile(run)
    for _ in range(3):
        Colliding.asked = 0
        got = compiled()
        Colliding.asked = 0
        assert got == run()


class Unsteady:
    value = 1

    def __hash__(self):
        if self.value == 0:
            raise ValueError("no hash")
        return self.value


@pytest.mark.parametrize("later", (0, 2))
def test_keys_whose_hash_changes_stay_where_they_are(later):
    def run():
        key = Unsteady()
        held, members = {key: 5}, {key}
        key.value = later
        tenon.graph_break()
        found = outcome(lambda: (held.get(key), key in members))
        key.value = 1
        return found, held[key], key in members

    compiled = tenon.compile(run)
    assert [compiled() for _ in range(2)] == [run()] * 2
