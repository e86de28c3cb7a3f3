"""What the ctx of a torch.autograd.Function holds behind objects is read as it is when gradients are computed, or torch runs the function."""
import collections
import dataclasses
import types
from collections.abc import Callable
from typing import Any

import pytest

import tenon

torch = pytest.importorskip("torch")
from torch.autograd import Function  # noqa: E402

D = torch.float64


@dataclasses.dataclass
class Record:
    t: Any
    k: float = 2.0


class Slotted:
    __slots__ = ("t", "k")

    def __init__(self, t: Any) -> None:
        self.t, self.k = t, 2.0


Pair = collections.namedtuple("Pair", "t k")


@dataclasses.dataclass
class Holder:
    make: Callable
    tensor: Callable
    factor: Callable
    change: Callable | None = None  # the factor, to 5


HOLDERS = {
    "dict": Holder(lambda t: {"t": t, "k": 2.0}, lambda h: h["t"], lambda h: h["k"], lambda h: h.update(k=5.0)),
    "nested": Holder(lambda t: [({"t": t, "k": 2.0},)], lambda h: h[0][0]["t"], lambda h: h[0][0]["k"], lambda h: h[0][0].update(k=5.0)),
    "list": Holder(lambda t: [t, 2.0], lambda h: h[0], lambda h: h[1], lambda h: h.__setitem__(1, 5.0)),
    "dataclass": Holder(Record, lambda h: h.t, lambda h: h.k, lambda h: setattr(h, "k", 5.0)),
    "slots": Holder(Slotted, lambda h: h.t, lambda h: h.k, lambda h: setattr(h, "k", 5.0)),
    "namespace": Holder(lambda t: types.SimpleNamespace(t=t, k=2.0), lambda h: h.t, lambda h: h.k, lambda h: setattr(h, "k", 5.0)),
    "named tuple": Holder(lambda t: Pair(t, 2.0), lambda h: h.t, lambda h: h.k),
    "closure": Holder(lambda t: lambda: t, lambda h: h(), lambda h: 2.0),
    "deque": Holder(lambda t: collections.deque([t, 2.0]), lambda h: h[0], lambda h: h[1], lambda h: h.__setitem__(1, 5.0)),
}


def function_that_keeps(holder: Holder, kept: str, escapes: list | None) -> type[Function]:
    class Keeps(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.held = holder.make(x if kept == "input" else y)
            if escapes is not None:
                escapes.append(ctx.held)
            return y

        @staticmethod
        def backward(ctx, gradient):
            return gradient * holder.tensor(ctx.held) * holder.factor(ctx.held)

    return Keeps


def gradient_after(run: Callable, change: Callable) -> Any:
    x = torch.linspace(-1, 1, 5, dtype=D).requires_grad_()
    y = run(x)
    with torch.no_grad():
        change(x, y)
    return torch.autograd.grad(y.sum(), x)[0]


@pytest.mark.parametrize("kept", ["input", "result"])
@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS.keys())
def test_a_tensor_behind_an_object_is_read_as_it_is(holder, kept, tier):
    def change(x, y):
        (x if kept == "input" else y).add_(1)

    keeps = function_that_keeps(holder, kept, None)
    want = gradient_after(keeps.apply, change)
    compiled = tenon.compile(lambda x: keeps.apply(x))
    if kept == "input":  # refused once, from then on by torch
        with pytest.raises(RuntimeError, match="from here on torch runs this backward"):
            gradient_after(compiled, change)
    for _ in range(2):
        torch.testing.assert_close(gradient_after(compiled, change), want)
    assert tenon.stats()["graph_breaks"] == 1


@pytest.mark.parametrize("holder", [h for h in HOLDERS.values() if h.change], ids=[n for n, h in HOLDERS.items() if h.change])
def test_an_object_that_leaves_and_is_changed_is_read_as_it_is(holder, tier):
    outside: list = []
    keeps = function_that_keeps(holder, "input", outside)
    want = gradient_after(keeps.apply, lambda x, y: holder.change(outside[-1]))
    compiled = tenon.compile(lambda x: keeps.apply(x))
    for _ in range(2):
        torch.testing.assert_close(gradient_after(compiled, lambda x, y: holder.change(outside[-1])), want)
    assert tenon.stats()["graph_breaks"] == 1


def test_a_context_that_leaves_is_torchs(tier):
    outside: list = []

    class LeavesItsContext(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 2.0
            outside.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.factor

    def change(x, y):
        outside[-1].factor = 7.0

    compiled = tenon.compile(lambda x: LeavesItsContext.apply(x))
    for _ in range(2):
        torch.testing.assert_close(gradient_after(compiled, change), torch.full((5,), 7.0, dtype=D))
        assert "tenon" not in type(outside[-1]).__module__


def test_objects_that_stay_cost_no_break(tier):
    for holder in HOLDERS.values():
        keeps = function_that_keeps(holder, "input", None)
        torch.testing.assert_close(gradient_after(tenon.compile(lambda x, keeps=keeps: keeps.apply(x)), lambda x, y: None), gradient_after(keeps.apply, lambda x, y: None))
    assert tenon.stats()["graph_breaks"] == 0
