"""Runs a function through the evaluator and through Python, with a toy tensor, and compares.

`Number` is the toy tensor (a float that cannot be guarded by value), `Symbol` its stand-in. No tensor library is needed.
"""
import copy
import importlib.util
import operator
import os
import pathlib
import sys

import pytest


def _load():
    """The module of TENON_BUILD, or the one built last, for this Python."""
    folder = pathlib.Path(os.environ.get("TENON_BUILD", pathlib.Path(__file__).parents[2] / "build"))
    pattern = f"**/probe/evaluator_probe.cpython-{sys.version_info[0]}{sys.version_info[1]}-*.so"
    files = sorted(folder.glob(pattern), key=lambda file: file.stat().st_mtime)
    if not files:
        pytest.skip("the target evaluator_probe is not built for this Python", allow_module_level=True)
    spec = importlib.util.spec_from_file_location("evaluator_probe", files[-1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


probe = _load()


class Number:
    """The toy tensor."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Number({self.value})"

    def __eq__(self, other):
        return isinstance(other, Number) and self.value == other.value

    def relu(self):
        return Number(max(self.value, 0))


class Symbol:
    """Stands for a Number while a function is captured."""

    def __init__(self, tracer, op, args):
        self.tracer, self.op, self.args = tracer, op, args

    def __bool__(self):
        probe.signal("truth of a symbol")

    def __len__(self):
        probe.signal("length of a symbol")

    def relu(self):
        return Symbol(self.tracer, Number.relu, (self,))

    def __reduce_ex__(self, protocol):
        probe.signal("a copy of a symbol")

    __hash__ = object.__hash__


def _value(x):
    return x.value if isinstance(x, Number) else x


def _foreign(x):
    return not isinstance(x, (Number, int, float))


def _arithmetic(name):
    op = getattr(operator, name)

    def real(self, other):
        return NotImplemented if _foreign(other) else Number(op(self.value, _value(other)))

    def reflected(self, other):
        return NotImplemented if _foreign(other) else Number(op(_value(other), self.value))

    setattr(Number, f"__{name}__", real)
    setattr(Number, f"__r{name}__", reflected)
    setattr(Symbol, f"__{name}__", lambda self, other: Symbol(self.tracer, op, (self, other)))
    setattr(Symbol, f"__r{name}__", lambda self, other: Symbol(self.tracer, op, (other, self)))


for _name in ("add", "sub", "mul", "truediv"):
    _arithmetic(_name)
Number.__neg__ = lambda self: Number(-self.value)
Symbol.__neg__ = lambda self: Symbol(self.tracer, operator.neg, (self,))
Number.__lt__ = lambda self, other: self.value < _value(other)
Number.__gt__ = lambda self, other: self.value > _value(other)
Number.__bool__ = lambda self: bool(self.value)
Symbol.__lt__ = lambda self, other: Symbol(self.tracer, operator.lt, (self, other))
Symbol.__gt__ = lambda self, other: Symbol(self.tracer, operator.gt, (self, other))


def double(x):
    """A function that the recorder takes whole."""
    return x * 2


def zero():
    """A recorded function without tensor arguments."""
    return Number(0)


class Tracer:
    tensor_type, stand_in_type = Number, Symbol
    taken = (double, zero)

    def __init__(self):
        self.count = 0

    def make(self, real):
        self.count += 1
        return Symbol(self, "input", self.count - 1)

    def call(self, function, args, kwargs):
        return Symbol(self, function, args)


def run(symbol, inputs, memo):
    if isinstance(symbol, (list, tuple)):
        return type(symbol)(run(s, inputs, memo) for s in symbol)
    if not isinstance(symbol, Symbol):
        return symbol
    if id(symbol) not in memo:
        memo[id(symbol)] = inputs[symbol.args] if symbol.op == "input" else symbol.op(*[run(a, inputs, memo) for a in symbol.args])
    return memo[id(symbol)]


class Break(Exception):
    """The function was not captured."""


class Captured:
    def __init__(self, function, args, kwargs=None):
        self.tracer = Tracer()
        result = probe.capture(function, args, kwargs or {}, self.tracer)
        if result[0] is None:
            self.reason, self.function, self.code, self.line, self.hint = result[1:]
            raise Break(f"{self.reason} [{self.function}:{self.line}: {self.code}]")
        self.segment, self.guards, self.outputs, self.instructions = result

    def check(self, args, kwargs=None):
        return probe.check(self.segment, args, kwargs or {})

    def explain(self, args, kwargs=None):
        return probe.explain(self.segment, args, kwargs or {})

    def __call__(self, *args, **kwargs):
        assert self.check(args, kwargs), self.explain(args, kwargs)
        inputs, memo = probe.inputs(self.segment), {}
        return probe.build(self.segment, [run(o, inputs, memo) for o in self.outputs])


def same(a, b):
    assert type(a) is type(b), (a, b)
    if isinstance(a, dict):
        assert list(a) == list(b), (a, b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), (a, b)
        for x, y in zip(a, b):
            same(x, y)
    elif hasattr(a, "__dict__") and type(a).__eq__ is object.__eq__ and not callable(a):
        same(vars(a), vars(b))
    else:
        assert a == b or a != a and b != b, (a, b)


def check(function, *args, **kwargs):
    """Captures `function(*args)`, and compares three calls of the segment with Python's results. Returns the Captured."""
    captured = Captured(function, args, kwargs)
    for _ in range(3):
        same(captured(*args, **kwargs), function(*copy.deepcopy(args), **kwargs))
    return captured


def breaks(function, *args, reason=None, **kwargs):
    """Asserts that the function is not captured, and says why. The arguments must come out unchanged."""
    before = copy.deepcopy(args)
    with pytest.raises(Break) as info:
        Captured(function, args, kwargs)
    same(list(args), list(before))
    if reason is not None:
        assert reason in str(info.value), str(info.value)
    return str(info.value)
