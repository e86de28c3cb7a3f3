"""Classes and helpers that the cases use, older than every call."""
import abc
import collections
import dataclasses
import enum
import functools
import typing


class Plain:

    def __init__(self, v):
        self.v = v


mods = [Plain(1), Plain(2)]


@dataclasses.dataclass(frozen=True)
class P:
    x: int
    y: int = 2


@dataclasses.dataclass
class Q:
    a: object
    items: list = dataclasses.field(default_factory=list)
    k: int = dataclasses.field(default=3, compare=False)

    def __post_init__(self):
        self.items.append(self.k)


@dataclasses.dataclass(order=True)
class R:
    n: int
    s: str = 'a'


@dataclasses.dataclass(slots=True)
class S:
    n: int
    s: object = 'a'


N = collections.namedtuple('N', 'a b', defaults=[5])


class T(typing.NamedTuple):
    a: int
    b: object = 3


class Color(enum.Enum):
    RED = 1
    GREEN = 'g'


class F(enum.Flag):
    A = 1
    B = 2


class I(enum.IntEnum):
    ONE = 1
    TWO = 2


class MyErr(Exception):

    def __init__(self, code, msg):
        super().__init__(msg)
        self.code = code


class Closer:

    def __init__(self, log):
        self.log = log

    def close(self):
        self.log.append('closed')


class Base:
    kind = 'base'

    def __init__(self, **k):
        self.__dict__.update(k)

    def hook(self, v):
        return v

    def __call__(self, v):
        return self.hook(v)


class Derived(Base):

    def __init__(self, **k):
        super().__init__(**k)
        self.n = 1

    def hook(self, v):
        return super().hook(v) * 2

    def __getattr__(self, n):
        if n.startswith('dyn_'):
            return n
        raise AttributeError(n)


class Desc:

    def __set_name__(self, o, n):
        self.n = '_' + n

    def __get__(self, o, t=None):
        return self if o is None else o.__dict__.get(self.n, 0)

    def __set__(self, o, v):
        o.__dict__[self.n] = v + 1

    def __delete__(self, o):
        o.__dict__.pop(self.n, None)


class WithDesc:
    f = Desc()

    @property
    def p(self):
        return self._p

    @p.setter
    def p(self, v):
        self._p = v * 2

    @p.deleter
    def p(self):
        del self._p

    @functools.cached_property
    def c(self):
        return self.f * 10


class Ops:

    def __init__(self, v):
        self.v = v

    def __add__(self, o):
        return Ops(self.v + getattr(o, 'v', o))
    __radd__ = __add__

    def __iadd__(self, o):
        self.v += getattr(o, 'v', o)
        return self

    def __mul__(self, o):
        return NotImplemented

    def __rmul__(self, o):
        return ('rmul', o)

    def __neg__(self):
        return Ops(-self.v)

    def __eq__(self, o):
        return isinstance(o, Ops) and self.v == o.v

    def __hash__(self):
        return hash(self.v)

    def __lt__(self, o):
        return self.v < o.v

    def __len__(self):
        return 3

    def __bool__(self):
        return self.v != 0

    def __getitem__(self, i):
        return (self.v, i)

    def __setitem__(self, i, v):
        self.v = (i, v)

    def __delitem__(self, i):
        self.v = None

    def __contains__(self, i):
        return i == self.v

    def __iter__(self):
        return iter([1, 2])

    def __call__(self, *a, **k):
        return (a, k)

    def __enter__(self):
        return self

    def __exit__(self, *e):
        self.e = e[0]
        return True

    def __repr__(self):
        return f'Ops({self.v})'

    def __format__(self, s):
        return 'F' + s

    def __index__(self):
        return 1

    def __int__(self):
        return 7

    def __float__(self):
        return 2.5

    def __abs__(self):
        return 'abs'

    def __round__(self, n=None):
        return ('r', n)

    def __matmul__(self, o):
        return 'mm'

    def __divmod__(self, o):
        return 'dm'

    def __pow__(self, o, m=None):
        return ('pow', o, m)

    def __reversed__(self):
        return iter([2, 1])

    def __missing__(self, k):
        return k


@functools.singledispatch
def sd(v):
    return 'obj'


@sd.register
def _(v: int):
    return 'int'


@sd.register(list)
def _(v):
    return 'list'


@functools.lru_cache
def cached(n):
    return [n]


@functools.total_ordering
class TO:

    def __init__(s, v):
        s.v = v

    def __eq__(s, o):
        return s.v == o.v

    def __lt__(s, o):
        return s.v < o.v


class Ab(abc.ABC):

    @abc.abstractmethod
    def f(self):
        ...


class Co(Ab):

    def f(self):
        return 1


class Meta(type):

    def __call__(cls, *a):
        o = super().__call__(*a)
        o.made = True
        return o

    def __getattr__(cls, n):
        return 'meta_' + n

    @property
    def mp(cls):
        return 'mp'


class WithMeta(metaclass=Meta):

    def __init__(self, v):
        self.v = v


class Lst(list):

    def first(self):
        return self[0]


class Dct(dict):

    def __missing__(self, k):
        return k * 2

    def __getattr__(self, k):
        return self[k]


class GetAttribute:

    def __getattribute__(self, n):
        if n == 'magic':
            return 42
        return object.__getattribute__(self, n)

    def __setattr__(self, n, v):
        object.__setattr__(self, n + '_', v)

    def __delattr__(self, n):
        object.__delattr__(self, n + '_')


class New:

    def __new__(cls, v):
        o = super().__new__(cls)
        o.n = v
        return o

    def __init__(self, v):
        self.i = v

    def __init_subclass__(cls, **k):
        cls.sub = True

    def __class_getitem__(cls, k):
        return k


class It:

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Seq:

    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return i * 2

    def __len__(self):
        return 3
