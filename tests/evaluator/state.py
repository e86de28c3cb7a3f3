"""Compares what calls leave behind: results, arguments and globals, down to which objects are one."""
import collections
import copy
import types

from harness import Break, Captured, Number

ATOMS = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented), range, type, types.ModuleType, types.BuiltinFunctionType)


class Differs(AssertionError):
    """Two object graphs are not alike."""


def shown(value):
    """The repr of a value, or of its class where Python refuses to write an int in it out in full."""
    try:
        return repr(value)
    except ValueError:
        return f"<{type(value).__name__} with a very large int>"


def same_type(a, b):
    """Whether two classes are one, or the same class of two worlds (modules whose names start with `fuzz_`)."""
    worlds = a.__module__.startswith("fuzz_") and b.__module__.startswith("fuzz_")
    return a is b or worlds and a.__qualname__ == b.__qualname__


class _Walk:
    """Walks two graphs of objects at once: types, values, and identity (one object here is one object there)."""

    def __init__(self):
        self.seen, self.back, self.keep = {}, {}, []

    def same(self, a, b, path):
        if not same_type(type(a), type(b)):
            raise Differs(f"{path}: {type(a).__name__} {shown(a)} is not {type(b).__name__} {shown(b)}")
        if isinstance(a, type):
            if not same_type(a, b):
                raise Differs(f"{path}: {shown(a)} is not {shown(b)}")
            return
        if isinstance(a, ATOMS):
            if not (a == b or (a != a and b != b)) or not isinstance(a, int) and repr(a) != repr(b):
                raise Differs(f"{path}: {shown(a)} is not {shown(b)}")
            return
        shared = isinstance(a, (tuple, frozenset))  # which of them are one object is up to the compiler's constants
        if not shared:
            if (id(a) in self.seen) != (id(b) in self.back):
                raise Differs(f"{path}: {shown(a)} is shared on one side only ({shown(b)})")
            if id(a) in self.seen:
                if self.seen[id(a)] != id(b):
                    raise Differs(f"{path}: {shown(a)} is another object than before")
                return
            self.seen[id(a)], self.back[id(b)] = id(b), id(a)
            self.keep.append((a, b))
        self.parts(a, b, path)

    def parts(self, a, b, path):
        if isinstance(a, dict):
            self.sequence(list(a), list(b), path + ".keys()")
            for key, other in zip(a, b):
                self.same(a[key], b[other], f"{path}[{key!r}]")
            if isinstance(a, collections.defaultdict):
                self.same(a.default_factory, b.default_factory, path + ".default_factory")
        elif isinstance(a, (list, tuple, collections.deque)):
            self.sequence(a, b, path)
            if isinstance(a, collections.deque):
                self.same(a.maxlen, b.maxlen, path + ".maxlen")
        elif isinstance(a, (set, frozenset)):
            if a != b and sorted(map(repr, a)) != sorted(map(repr, b)):
                raise Differs(f"{path}: {shown(a)} is not {shown(b)}")
        elif isinstance(a, Number):
            if not (a.value == b.value or a.value != a.value and b.value != b.value):
                raise Differs(f"{path}: {shown(a)} is not {shown(b)}")
            return
        elif hasattr(a, "tolist"):  # arrays and tensors
            self.numbers(a, b, path)
            return
        elif isinstance(a, types.CellType):
            self.same(*(_contents(c) for c in (a, b)), path + ".cell_contents")
        elif isinstance(a, types.FunctionType):
            self.same(a.__name__, b.__name__, path + ".__name__")
            if a.__code__ is not b.__code__ and a.__code__ != b.__code__:
                raise Differs(f"{path}: other code")
            for part in ("__defaults__", "__kwdefaults__", "__closure__"):
                self.same(getattr(a, part), getattr(b, part), f"{path}.{part}")
        elif isinstance(a, types.MethodType):
            self.same(a.__func__, b.__func__, path + ".__func__")
            self.same(a.__self__, b.__self__, path + ".__self__")
        elif isinstance(a, BaseException):
            self.sequence(a.args, b.args, path + ".args")
            self.same(a.__cause__, b.__cause__, path + ".__cause__")
        if hasattr(a, "__dict__") and not isinstance(a, types.FunctionType):
            self.same(vars(a), vars(b), path + ".__dict__")
        for base in type(a).__mro__:
            slots = base.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot not in ("__dict__", "__weakref__"):
                    self.same(getattr(a, slot, Ellipsis), getattr(b, slot, Ellipsis), f"{path}.{slot}")

    def numbers(self, a, b, path):
        x, y = a.ravel().tolist(), b.ravel().tolist()
        alike = a.dtype == b.dtype and tuple(a.shape) == tuple(b.shape)
        if not alike or not all(p == q or p != p and q != q or abs(p - q) <= 1e-5 * max(abs(p), abs(q)) for p, q in zip(x, y)):
            raise Differs(f"{path}: {shown(a)} is not {shown(b)}")

    def sequence(self, a, b, path):
        if len(a) != len(b):
            raise Differs(f"{path}: {shown(a)} is not {shown(b)}")
        for at, (x, y) in enumerate(zip(a, b)):
            self.same(x, y, f"{path}[{at}]")


def _contents(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return Ellipsis


def alike(a, b):
    """Raises Differs where two graphs of objects are not alike."""
    _Walk().same(a, b, "it")


def check_state(function, make, calls=3, captures=None):
    """Calls `function` plainly and captured, `calls` times in a row on two sets of arguments that live on, and compares everything.

    `make` gives a fresh tuple of arguments. A call whose guards fail is captured again; `captures` is how many captures there must be.
    """
    mine, plain = make(), make()
    captured, count = None, 0
    for _ in range(calls):
        if captured is None or not captured.check(mine):
            before = copy.deepcopy(mine)
            captured, count = Captured(function, mine), count + 1
            alike(list(mine), list(before))
        got, want = captured(*mine), function(*plain)
        alike([got, *mine], [want, *plain])
    assert captures is None or count == captures, count
    return captured


__all__ = ["Break", "Differs", "alike", "check_state", "shown"]
