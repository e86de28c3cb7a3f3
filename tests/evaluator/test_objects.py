"""Classes and objects as people write them, evaluated and executed: the results must be the same."""
import collections
import dataclasses

from harness import Number, check

x, y = Number(3.0), Number(5.0)


class Base:
    scale = 2
    made = 0

    def __init__(self, v):
        self.v = v

    @property
    def doubled(self):
        return self.v * self.scale

    @staticmethod
    def shift(v):
        return v + 1

    @classmethod
    def of(cls, v):
        return cls(v)

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return self.v * i

    def __call__(self, k):
        return self.v + k

    def __eq__(self, other):
        return isinstance(other, Base)

    def __contains__(self, item):
        return item == 2


class Child(Base):
    def __init__(self, v):
        super().__init__(v + 1)

    def __add__(self, other):
        return Child.shift(self.doubled + other)

    def __radd__(self, other):
        return self + other

    def __getattr__(self, name):
        if name == "virtual":
            return self.v * 10
        raise AttributeError(name)


def test_classes():
    def fn(a):
        c = Child(a)
        b = Base.of(a)
        return c + a, a + c, c.virtual, hasattr(c, "nope"), getattr(c, "nope", 5), len(b), b[2], b(4), b == c, 2 in b, bool(b), b.v, isinstance(c, Base), type(c) is Child, issubclass(Child, (int, Base))

    check(fn, x)


def test_arguments_that_are_objects():
    c = Child(x)
    captured = check(lambda o, k: o + k, c, 3)
    assert captured.check((c, 3)) and not captured.check((c, 4)) and not captured.check((Base(x), 3))


@dataclasses.dataclass
class Pair:
    left: object
    right: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    k: int


Point = collections.namedtuple("Point", "x y")


def test_dataclasses_and_named_tuples():
    def fn(a):
        p = Pair(a + 1)
        p.right.append(Frozen(3).k)
        q = Point(a, 2)
        return p, q, q.x + q.y, q._replace(y=5), Point(*[1, 2]) == (1, 2)

    check(fn, x)


def test_modules_of_a_class_of_their_own():
    import types

    class Flag:
        def __get__(self, owner, kind):
            return owner.level + 1

    class Settings(types.ModuleType):
        flag = Flag()

        def __getattr__(self, name):
            return {"late": 7}[name]

    settings = Settings("settings")
    settings.level = 2
    captured = check(lambda a: (a * settings.flag, settings.late), x)
    settings.level = 3
    assert not captured.check((x,))
