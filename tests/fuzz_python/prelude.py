"""What generated programs find around them: classes, helpers and globals. Executed afresh for each side of a comparison."""
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import math
import operator
import sys
import typing

G = 3
LOG = []
TABLE = {"x": 1, "y": 2}
MEMO = {}
GROUP = {1, 2, 5}
QUEUE = collections.deque([1, 2, 3], maxlen=4)
COUNTS = collections.Counter("ab")
NAMES = collections.defaultdict(list)
ORDER = collections.OrderedDict(p=1, q=2, r=3)


@dataclasses.dataclass
class Point:
    x: int
    y: object = 0

    def shifted(self, k):
        return dataclasses.replace(self, x=self.x + k)


@dataclasses.dataclass(frozen=True)
class Key:
    name: str
    index: int = 0


Pair = collections.namedtuple("Pair", "first second")


class Slotted:
    __slots__ = ("v", "w")

    def __init__(self, v):
        self.v = v


class Box:
    kind = "box"

    def __init__(self, v, w, t):
        self.v, self.w, self.t = v, w, t

    @property
    def double(self):
        return self.v * 2

    @double.setter
    def double(self, value):
        self.v = value // 2

    def __getattr__(self, name):
        if name.startswith("dyn"):
            return len(name)
        raise AttributeError(name)

    def bump(self, k=1):
        self.v += k
        return self

    def __len__(self):
        return len(self.w)

    def __iter__(self):
        return iter(self.w)

    def __getitem__(self, i):
        return self.w[i]

    def __setitem__(self, i, value):
        self.w[i] = value

    def __contains__(self, item):
        return item in self.w


class Child(Box):
    kind = "child"

    def bump(self, k=1):
        super().bump(k + 1)
        self.__dict__.setdefault("bumps", []).append(k)
        return self

    def __add__(self, other):
        return Child(self.v + getattr(other, "v", other), [*self.w], self.t)

    __radd__ = __add__

    def __eq__(self, other):
        return isinstance(other, Child) and self.v == other.v

    def __hash__(self):
        return hash(self.v)


class Context:
    def __init__(self, log, swallow):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("in")
        return len(self.log)

    def __exit__(self, kind, value, traceback):
        self.log.append(kind.__name__ if kind else "out")
        return self.swallow


class Trouble(Exception):
    def __init__(self, code, text="t"):
        super().__init__(text)
        self.code = code


@contextlib.contextmanager
def noted(log, what):
    log.append(what)
    try:
        yield what * 2
    finally:
        log.append(-what)


def counting(n):
    for i in range(n % 5):
        got = yield i
        if got is not None:
            yield got
    return n


def chained(n):
    last = yield from counting(n)
    yield last


def twice(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(function(*args, **kwargs))

    return inner


@twice
def plus_one(k):
    return k + 1


def power(base, n):
    return 1 if n <= 0 else base * power(base, n - 1)


def varied(p, q=2, *rest, k=3, **more):
    return p + q * k + sum(rest) + len(more)


def checked(k):
    if k % 3 == 0:
        raise Trouble(k)
    return k


def total(tensor):
    """A number that only the values of a tensor can tell; 0 where they cancel out, as what is left then hangs on the order of summation."""
    found = float(tensor.sum())
    return 0.0 if abs(found) < 1e-5 * float(abs(tensor * 1.0).sum()) else found
