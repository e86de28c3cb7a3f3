"""Classes that a call makes: without a break where they stay inside of it, made anew by every call where they leave it."""
import abc
import collections
import dataclasses
import enum
import functools
import typing

import pytest
import tenon


def whole(fn, *args):
    compiled = tenon.compile(fn, fullgraph=True)
    want = fn(*args)
    for _ in range(2):
        assert compiled(*args) == want
    return want


def with_breaks(fn, *args, most):
    """Gives two results of a compiled function; no more than `most` breaks."""
    compiled = tenon.compile(fn)
    results = [compiled(*args) for _ in range(3)]
    assert tenon.stats()["graph_breaks"] <= most
    assert tenon.stats()["eager_fallbacks"] == 0
    return results


class Registry:
    seen: list = []
    names: dict = {}

    def __init_subclass__(cls, *, tag="none", **kwargs):
        super().__init_subclass__(**kwargs)
        cls.tag = tag


class Named:
    def __set_name__(self, owner, name):
        self.name = f"{owner.__name__}.{name}"

    def __get__(self, obj, objtype=None):
        return self.name if obj is None else (self.name, obj.value)


class Meta(type):
    @classmethod
    def __prepare__(mcls, name, bases, **kwargs):
        return {"prepared": name, **kwargs}

    def __new__(mcls, name, bases, space, **kwargs):
        made = super().__new__(mcls, name, bases, dict(space, added=len(space)))
        return made

    def __init__(cls, name, bases, space, **kwargs):
        super().__init__(name, bases, space)
        cls.options = sorted(kwargs)

    def __call__(cls, *args):
        return ("made", super().__call__(*args))


def test_dataclasses():
    def run(x):
        @dataclasses.dataclass
        class Point:
            x: int
            y: int = 2
            tags: list = dataclasses.field(default_factory=list)

            def moved(self, by):
                return dataclasses.replace(self, x=self.x + by)

        @dataclasses.dataclass(order=True)
        class Third(Point):
            z: float = 0.5

        a, b = Point(x), Point(x, 3, [1])
        a.tags.append(x)
        c = Third(1, 2, [], 1.5)
        return a.moved(4).x, a == b, a != b, repr(b), c < Third(1, 3), dataclasses.astuple(c), [f.name for f in dataclasses.fields(c)], b.y, dataclasses.asdict(a)

    whole(run, 3)


def test_frozen_and_slotted_dataclasses():
    def run(x):
        @dataclasses.dataclass(frozen=True)
        class Frozen:
            x: int

        @dataclasses.dataclass(slots=True)
        class Slotted:
            x: int
            y: int = 5

        try:
            Frozen(x).x = 4
        except dataclasses.FrozenInstanceError as error:
            message = str(error)
        return message, hash(Frozen(x)) == hash(Frozen(x)), Slotted(x).y, hasattr(Slotted(x), "__dict__"), {Frozen(1): 2}[Frozen(1)]

    whole(run, 3)


def test_named_tuples():
    def run(x):
        Pair = collections.namedtuple("Pair", "first second", defaults=[7])

        class Typed(typing.NamedTuple):
            a: int
            b: str = "b"

            def both(self):
                return f"{self.a}{self.b}"

        p = Pair(x)
        first, second = p
        return p.second, p._replace(first=2) == (2, 7), p._asdict(), repr(p), first + second, Typed(x).both(), Typed(1, b="q")[1], Pair._fields

    whole(run, 3)


def test_enumerations():
    def run(x):
        class Color(enum.Enum):
            RED = 1
            GREEN = enum.auto()

            @property
            def low(self):
                return self.name.lower()

        class Flag(enum.IntFlag):
            A = 1
            B = 2

        return Color.RED.value, Color(2).name, Color["RED"] is Color.RED, [c.name for c in Color], Color.GREEN.low, (Flag.A | Flag.B).value, isinstance(Color.RED, Color)

    whole(run, 3)


def test_hooks():
    def run(x):
        class Tagged(Registry, tag="t"):
            field = Named()
            value = x

        class Plain(Registry):
            pass

        return Tagged.tag, Plain.tag, Tagged.field, Tagged().field

    whole(run, 3)


def test_metaclasses():
    def run(x):
        class A(metaclass=Meta, option=x):
            value = x

            def __init__(self, n=0):
                self.n = n

        return A.prepared, A.added, A.options, A.value, A(5)[0], A(5)[1].n, A.option, type(A) is Meta

    whole(run, 3)


def test_abstract_classes():
    def run(x):
        class Base(abc.ABC):
            @abc.abstractmethod
            def f(self):
                return 1

        class Real(Base):
            def f(self):
                return super().f() + x

        try:
            Base()
        except TypeError as error:
            refused = "abstract" in str(error)
        return Real().f(), refused, isinstance(Real(), Base), issubclass(Real, Base)

    whole(run, 3)


def test_slots_super_closures_and_generics():
    T = typing.TypeVar("T")

    def run(x):
        class Base:
            __slots__ = ("a",)

            def __init__(self, a):
                self.a = a

            @classmethod
            def make(cls, a):
                return cls(a)

            @staticmethod
            def twice(a):
                return a * 2

        class Derived(Base):
            __slots__ = ("b",)

            def __init__(self, a):
                super().__init__(a + x)
                self.b = lambda: self.a + x

            @functools.cached_property
            def unused(self):
                return 1

            @property
            def sum(self):
                return self.b() + self.twice(x)

        class Box(typing.Generic[T]):
            def __init__(self, item: T):
                self.item = item

        made = type("Made", (Base,), {"__slots__": (), "c": 5})
        return Derived.make(2).sum, Box(x).item, made(1).c + made(1).a, made.__name__, Derived.__mro__[1] is Base

    def without_cached_property(x):
        return run(x)

    compiled = tenon.compile(without_cached_property)
    for _ in range(2):
        try:
            want = run(4)
        except TypeError as error:
            with pytest.raises(TypeError, match=str(error)[:20]):
                compiled(4)
        else:
            assert compiled(4) == want


def test_total_ordering_and_closures():
    def run(x):
        @functools.total_ordering
        class Version:
            def __init__(self, n):
                self.n = n

            def __eq__(self, other):
                return self.n == other.n

            def __lt__(self, other):
                return self.n + x < other.n + x

        return Version(1) >= Version(2), Version(3) > Version(2), max(Version(1), Version(4)).n

    whole(run, 3)


def test_a_class_that_leaves_is_new_each_time():
    def plain(x):
        class Local:
            value = x

        return Local

    def decorated(x):
        @dataclasses.dataclass
        class Point:
            x: int

        return Point(x)

    def named(x):
        return collections.namedtuple("P", "a b")(x, 1)

    def enumerated(x):
        class Color(enum.Enum):
            RED = 1

        return Color.RED

    made = with_breaks(plain, 3, most=1)
    assert len({id(each) for each in made}) == 3 and made[0].value == 3
    tenon.reset()
    points = with_breaks(decorated, 3, most=6)  # what follows its statement is captured for each class
    assert len({type(each) for each in points}) == 3 and points[0].x == 3
    tenon.reset()
    pairs = with_breaks(named, 3, most=1)
    assert len({type(each) for each in pairs}) == 3 and pairs[0] == (3, 1)
    tenon.reset()
    colors = with_breaks(enumerated, 3, most=2)
    assert len({type(each) for each in colors}) == 3 and colors[0].value == 1


def test_a_registry_gets_each_class():
    class Base:
        made: list = []

        def __init_subclass__(cls):
            Base.made.append(cls)

    def run(x):
        class Sub(Base):
            value = x

        return Sub.value + 1

    compiled = tenon.compile(run)
    for count in range(1, 4):
        assert compiled(3) == 4
        assert len(Base.made) == count and len(set(Base.made)) == count


def test_tensors_in_classes():
    torch = pytest.importorskip("torch")

    def run(x):
        class Holder:
            weight = x * 2

            def apply(self, y):
                return y @ self.weight

        @dataclasses.dataclass
        class State:
            hidden: torch.Tensor
            steps: int = 0

            def step(self, y):
                return State(self.hidden + y, self.steps + 1)

        state = State(x).step(x).step(x)
        return Holder().apply(state.hidden), state.steps

    compiled, x = tenon.compile(run, fullgraph=True), torch.randn(3, 3)
    for _ in range(2):
        got, want = compiled(x), run(x)
        assert torch.allclose(got[0], want[0]) and got[1] == want[1]


def test_typed_dicts_call_dict():
    def run(x):
        Made = typing.TypedDict("Made", {"name": str})

        class Stated(typing.TypedDict, total=False):
            a: int

        return type(Made(name="x")) is dict, Stated(a=x), Stated.__total__

    compiled = tenon.compile(run)
    assert compiled(1) == run(1) == compiled(1)


def test_an_error_in_a_class_statement():
    def run(x):
        try:
            @dataclasses.dataclass
            class Bad:
                x: int = 1
                y: int
        except TypeError as error:
            message = str(error)
        try:
            class Worse(int, str):
                pass
        except TypeError:
            return message, "layout"

    compiled = tenon.compile(run)
    assert compiled(1) == run(1) == compiled(1)
