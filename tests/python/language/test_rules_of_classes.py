"""Small rules of Python's classes and protocols: compiled twice, what plain execution gives, exceptions included."""
import collections
import enum
import re
import sys
import types

import pytest

import tenon


def outcome(call, *args):
    try:
        return call(*args)
    except Exception as error:
        return type(error), str(error)


class Plain:
    pass


class Closed(tuple):
    pass


class Frozen(frozenset):
    pass


def arguments_that_no_method_takes():
    return outcome(Plain, 1), outcome(object.__new__, Plain, 1), outcome(object.__new__, list)


def named_arguments_of_immutable_subclasses():
    return outcome(lambda: Closed(newarg=3)), outcome(lambda: Frozen(newarg=3))


def an_init_that_gives_something():
    class Odd:
        def __init__(self):
            return 1

    return outcome(Odd)


def the_init_of_what_new_makes():
    class Base:
        def __new__(cls, give):
            return object.__new__(Derived if give else cls)

        def __init__(self, give):
            self.by = "Base"

    class Derived(Base):
        def __init__(self, give):
            self.by = "Derived"

    return Base(False).by, Base(True).by


def reflected_operators():
    class A:
        def __floordiv__(self, other):
            return "A.__floordiv__"

        def __rfloordiv__(self, other):
            return "A.__rfloordiv__"

        def __add__(self, other):
            return NotImplemented

        def __radd__(self, other):
            return "A.__radd__"

    class Same(A):
        pass

    class Own(A):
        def __rfloordiv__(self, other):
            return "Own.__rfloordiv__"

    return A() // Same(), A() // Own(), 1 // A(), outcome(lambda: A() + A())[0], 1 + A()


def a_class_that_an_object_claims():
    class Proxy:
        @property
        def __class__(self):
            return str

    return isinstance(Proxy(), str), isinstance(Proxy(), Proxy), isinstance(Proxy(), int), Proxy().__class__


def iterators_that_are_none():
    class Bad:
        def __iter__(self):
            return self

    return outcome(iter, Bad()), outcome(lambda: [*Bad()])


def hashes_are_ints_as_they_are():
    class Hashed:
        def __init__(self, given):
            self.given = given

        def __hash__(self):
            return self.given

    return [hash(Hashed(n)) for n in (0, -1, 2**61 - 1, 2**62, -(2**63), 2**70)], hash(Hashed(hash((1, 2)))) == hash((1, 2))


def hashes_that_count():
    class Counted:
        asked = 0

        def __hash__(self):
            self.asked += 1
            return 42

        def __eq__(self, other):
            return self is other

    a, b = Counted(), Counted()
    table = {a: 1}
    table[b] = 2
    return a.asked, b.asked, table[a]


def keyword_arguments_that_are_no_strings():
    return outcome(lambda: dict(**{1: 2}))[0], outcome(lambda: dict(**{"a": 1}, **{"a": 2}))[0]


def class_patterns():
    class Point:
        __match_args__ = ("x", "y")

        def __init__(self, x):
            self.x = x

    class Many:
        __match_args__ = "xy"

    def positional(value):
        match value:
            case Point(x, y):
                return x, y
            case Point(x):
                return x
            case Many(x):
                return x
            case Plain(x):
                return x
            case int(n) | str(n):
                return n

    twice = []
    for value in (Point(1), 3, "text", Many(), Plain()):
        twice.append(outcome(positional, value))
    return [t if isinstance(t, (int, str)) else t[0] for t in twice]


def attributes_looked_at_twice():
    class Point:
        __match_args__ = ("x", "x")
        x = 1

    def matched(value):
        match value:
            case Point(x, y):
                return x, y

    return outcome(matched, Point())


class Flags(enum.Flag):
    A = 1
    B = 2
    C = 4


def inverted_flags():
    return [(~flag).value for flag in (Flags.A, Flags.B, Flags.C, Flags.A | Flags.B, Flags(0))]


def order_of_sets():
    words = {str(n) * 3 for n in range(50)}
    for n in range(0, 50, 3):
        words.discard(str(n) * 3)
    made = collections.namedtuple("T", ["w" + w for w in words])
    return list(made._fields) == ["w" + w for w in words]


def methods_with_other_arguments(items):
    tenon.graph_break()
    return outcome(items.__setitem__), outcome(items.__setitem__, 0), outcome(items.sort, 2), outcome(items.sort, 2, 3)[0], items


PROGRAMS = [
    arguments_that_no_method_takes, named_arguments_of_immutable_subclasses, an_init_that_gives_something, the_init_of_what_new_makes,
    reflected_operators, a_class_that_an_object_claims, iterators_that_are_none, hashes_are_ints_as_they_are, hashes_that_count,
    keyword_arguments_that_are_no_strings, class_patterns, attributes_looked_at_twice, inverted_flags, order_of_sets,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program):
    compiled = tenon.compile(program)
    want = program()
    assert [compiled(), compiled()] == [want, want]


def test_methods_with_other_arguments():
    compiled = tenon.compile(methods_with_other_arguments)
    for _ in range(2):
        assert compiled([2, 1]) == methods_with_other_arguments([2, 1])


def test_lists_sorted_by_what_changes_them():
    import functools

    def changed():
        items = [3, 1, 2]

        def compare(a, b):
            items.append(0)
            return a - b

        return outcome(lambda: items.sort(key=functools.cmp_to_key(compare))), items

    compiled = tenon.compile(changed)
    assert [compiled(), compiled()] == [changed(), changed()]


def test_lengths_that_are_none():
    class Odd:
        def __len__(self):
            return -1

    def lengths():
        return outcome(len, Odd())

    assert tenon.compile(lengths)() == lengths()


def test_comparisons_that_a_method_leaves_to_the_base():
    def compared():
        counted = collections.Counter("abcaba")
        return counted == {"a": 3, "b": 2, "c": 1}, {"a": 3, "b": 2, "c": 1} == counted, counted != {"a": 3}, counted == 3

    assert tenon.compile(compared)() == compared()


def test_special_methods_that_are_objects():
    class Counting:
        asked = 0

        def __get__(self, owner, of=None):
            type(self).asked += 1
            return lambda name: name

    class Looked:
        __getattr__ = Counting()

    def looks(owner):
        return owner.nothing, Counting.asked

    compiled = tenon.compile(looks)
    assert [compiled(Looked()), compiled(Looked())] == [("nothing", 1), ("nothing", 2)]


def test_a_cell_as_self_is_no_self():
    class Base:
        def method(self):
            return super().__init__

    def run():
        try:
            return Base.method(types.CellType())
        except TypeError as error:
            return str(error)

    compiled = tenon.compile(run)
    assert compiled() == run() == compiled()


def test_a_bound_method_in_c_of_a_base_across_a_break():
    class Counted(list):
        def append(self, item):
            base = super().append
            tenon.graph_break()
            base(item + 1)
            call = super().__len__
            tenon.graph_break()
            return call()

        def __len__(self):
            return -1

    def run():
        items = Counted()
        return items.append(1), items[0]

    compiled = tenon.compile(run)
    assert compiled() == run() == compiled() == (1, 2)


def test_a_bound_method_that_takes_its_defining_class_across_a_break():
    def run(text):
        replace = re.compile("a+").sub
        tenon.graph_break()
        return replace("b", text)

    compiled = tenon.compile(run)
    assert compiled("caat") == compiled("caat") == "cbt"


def test_a_subscript_of_a_class_runs_what_the_program_says():
    asked = []

    class Meta(type):
        def __getitem__(cls, key):
            asked.append(key)
            return [key]

    class WithMeta(metaclass=Meta):
        pass

    class Generic:
        def __class_getitem__(cls, key):
            asked.append((cls.__name__, key))
            return cls, key

    def run(x):
        return WithMeta[x], Generic[x], list[int]

    compiled = tenon.compile(run)
    for count in range(1, 4):
        assert compiled(count) == ([count], (Generic, count), list[int])
        assert asked[-2:] == [count, ("Generic", count)] and len(asked) == 2 * count


def test_a_classmethod_of_a_property():
    class Base:
        @classmethod
        @property
        def size(cls):
            return cls.__name__ + "!"

    def run():
        return Base.size

    if sys.version_info < (3, 13):
        compiled = tenon.compile(run)
        assert compiled() == run() == compiled()


class LooksUpItself(type):
    asked = []

    def __getattribute__(cls, name):
        if name == "renamed":
            LooksUpItself.asked.append(name)
            name = "value"
        return super().__getattribute__(name)


def test_a_metaclass_that_looks_attributes_up_itself():
    class Made(metaclass=LooksUpItself):
        value = 3

    def run(x):
        return x * Made.renamed, len(LooksUpItself.asked)

    compiled = tenon.compile(run)
    for _ in range(2):
        LooksUpItself.asked.clear()
        got = compiled(2)
        LooksUpItself.asked.clear()
        assert got == run(2)
