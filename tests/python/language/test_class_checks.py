"""isinstance and issubclass where a class has a say in it, and what else asks classes."""
import abc
import collections
import collections.abc
import typing

import numpy as np
import pytest

import tenon

X = np.ones(2)


def same(fn, *args):
    compiled = tenon.compile(fn)
    for _ in range(2):
        got, want = compiled(X, *args), fn(X, *args)
        np.testing.assert_equal(got, want)
    return compiled


@pytest.mark.parametrize("test", [lambda x, o, of: x + isinstance(o, of), lambda x, o, of: x + issubclass(type(o), of)])
def test_a_class_that_is_registered_later(test):
    class Shape(abc.ABC):
        pass

    class Square:
        pass

    o = Square()
    compiled = same(test, o, Shape)
    Shape.register(Square)
    np.testing.assert_equal(compiled(X, o, Shape), test(X, o, Shape))


def test_a_metaclass_that_looks_at_the_instance():
    class Meta(type):
        limit = 3

        def __instancecheck__(cls, o):
            return getattr(o, "v", 0) > cls.limit

    class Big(metaclass=Meta):
        pass

    class Thing:
        v = 5

    def fn(x, o):
        return x + (10 if isinstance(o, Big) else 1)

    o = Thing()
    compiled = same(fn, o)
    o.v = 1
    np.testing.assert_equal(compiled(X, o), fn(X, o))
    Big.limit = 0
    np.testing.assert_equal(compiled(X, o), fn(X, o))


def test_a_metaclass_that_asks_the_abstract_one():
    class Meta(abc.ABCMeta):
        def __instancecheck__(cls, o):
            return super().__instancecheck__(o) and o.ready

    class Ready(metaclass=Meta):
        pass

    class Thing(Ready):
        ready = True

    class Derived(Thing):
        pass

    def fn(x, o):
        return x + (10 if isinstance(o, Ready) else 1)

    o = Derived()
    compiled = same(fn, o)
    o.ready = False
    np.testing.assert_equal(compiled(X, o), fn(X, o))


def test_a_subclass_hook():
    class Open(abc.ABC):
        on = True

        @classmethod
        def __subclasshook__(cls, other):
            return cls.on

    def fn(x, o):
        return x + (10 if isinstance(o, Open) else 1)

    same(fn, object())


def test_arrays_are_what_their_class_is():
    same(lambda x: [isinstance(x, of) for of in (collections.abc.Iterable, collections.abc.Sized, collections.abc.Mapping, np.ndarray, abc.ABC)])
    same(lambda x: [isinstance(x * 2, of) for of in (collections.abc.Iterable, collections.abc.Hashable, collections.abc.Sequence)])


def test_a_counter_that_overrides_its_items():
    class Loud(collections.Counter):
        def __setitem__(self, key, value):
            log.append(key)
            super().__setitem__(key, value)

    log = []
    compiled = tenon.compile(lambda x, word: (x + 1, dict(Loud(word))))
    for word in ("aba", "c"):
        assert compiled(X, word)[1] == collections.Counter(word)
    assert log == ["a", "b", "a", "c"]


def test_aliases_of_the_objects_at_hand():
    T = typing.TypeVar("T")

    def fn(x):
        found = []
        for each in (typing.Tuple[T, int], typing.Tuple[T, str], int):
            tenon.graph_break()
            found.append(repr(list[each]))
        return found

    same(fn)


def test_what_aliases_are_made_of():
    given = list[int], int | None, dict[str, list[int]]

    def fn(x, wanted=float | str):
        return [(typing.get_args(each), typing.get_origin(each)) for each in (*given, wanted, int | str, tuple[int, ...])], x * len(wanted.__args__)

    report = tenon.explain(fn)(X)
    assert (report.graph_count, report.graph_break_count) == (1, 0)
    compiled = tenon.compile(fn)
    for wanted in (float | str, int | str, float | int | str):
        (got, y), (want, z) = compiled(X, wanted), fn(X, wanted)
        assert got == want and (y == z).all()


def test_lists_that_change_while_they_are_compared():
    class Clears:
        def __init__(self, other):
            self.other = other

        def __eq__(self, other):
            self.other.clear()
            return NotImplemented

    def fn(x):
        left, right = [], []
        left.append(Clears(right))
        right.append(Clears(left))
        return left == right

    same(fn)


def test_legacy_tensor_types_look_at_the_dtype():
    torch = pytest.importorskip("torch")

    def fn(x, kind):
        return isinstance(x + 1, kind), isinstance(x, (torch.LongTensor, torch.FloatTensor)), isinstance(x, torch.cuda.FloatTensor)

    compiled = tenon.compile(fn)
    for dtype in (torch.float32, torch.int64, torch.float64):
        for kind in (torch.FloatTensor, torch.LongTensor):
            assert compiled(torch.ones(2, dtype=dtype), kind) == fn(torch.ones(2, dtype=dtype), kind)


def test_objects_that_override_torch_functions():
    torch = pytest.importorskip("torch")

    class Overrides:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    def fn(x):
        asked = torch.overrides.has_torch_function_unary(x), torch.overrides.has_torch_function_variadic(1, x), torch.overrides.has_torch_function((x,))
        return asked, torch.nn.functional.relu6(x) if asked[0] else None

    compiled = tenon.compile(fn)
    for given in (Overrides(), 4, torch.ones(1), torch.nn.Parameter(torch.ones(1))):
        assert compiled(given) == fn(given)


def test_a_bool_that_is_none():
    class Odd:
        def __init__(self, value):
            self.value = value

        def __bool__(self):
            return self.value

    def fn(odd):
        try:
            return 1 if odd else 2
        except TypeError as error:
            return str(error)

    compiled = tenon.compile(fn)
    for value in (1.2, True, None, False):
        assert compiled(Odd(value)) == fn(Odd(value))


def test_any_tensor_may_be_marked_as_a_buffer_or_a_parameter():
    torch = pytest.importorskip("torch")

    class Counter(torch.nn.Module):
        def __init__(self, start):
            super().__init__()
            self.count = torch.nn.Buffer(start)

    def classes(tensor, start):
        marked = tensor + 1
        marked._is_param = True
        module = Counter(start)
        kinds = (torch.nn.Buffer, torch.nn.Parameter)
        return [isinstance(each, kind) for each in (tensor, marked, module.count) for kind in kinds], len(list(module.buffers()))

    compiled = tenon.compile(classes)
    for tensor in (torch.ones(2), torch.nn.Buffer(torch.ones(2)), torch.ones(2)):
        assert compiled(tensor, torch.zeros(1)) == classes(tensor, torch.zeros(1))


class Asked:
    """Is no class, but has a say."""

    def __init__(self, limit):
        self.limit, self.seen = limit, []

    def __instancecheck__(self, o):
        self.seen.append(o)
        return o > self.limit

    def __subclasscheck__(self, of):
        self.seen.append(of)
        return of is int


class LikeAClass:
    def __init__(self, bases):
        self.bases = bases

    @property
    def __bases__(self):
        return self.bases


def outcome(call, *args):
    try:
        return call(*args)
    except Exception as error:
        return type(error), str(error)


def test_objects_that_are_no_classes():
    def asked(x, o):
        return x * isinstance(2, o) + isinstance(4, o), issubclass(int, (str, o)), issubclass(str, o), list(o.seen)

    compiled, ours, plain = tenon.compile(asked), Asked(3), Asked(3)
    for limit in (3, 3, 5):
        ours.limit = plain.limit = limit
        np.testing.assert_equal(compiled(X, ours), asked(X, plain))
    base = LikeAClass(())
    derived = LikeAClass((base,))
    same(lambda x: (x + 1, issubclass(derived, base), issubclass(base, derived)))
    for check in (lambda: isinstance(3, 3), lambda: issubclass(int, 3), lambda: issubclass(3, int), lambda: isinstance(3, list[int])):
        assert outcome(tenon.compile(check)) == outcome(check)


def test_tuples_of_classes_nested_too_deeply():
    nested = (int,)
    for _ in range(2000):
        nested = (nested,)
    for check in (lambda: isinstance("", nested), lambda: issubclass(str, nested)):
        assert outcome(tenon.compile(check)) == outcome(check)
