"""What functions of the program's with gradients of their own give (torch.autograd.Function) leaves a compiled function, whose gradients are theirs."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from torch.autograd.function import once_differentiable  # noqa: E402

from tests.python.training.functions import Exponential, Reversed, Several, Spike, Swish  # noqa: E402

D = torch.float64
Function = torch.autograd.Function


class Quantised(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Cube(Function):
    @staticmethod
    def forward(x, power):
        return x**power

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.power = inputs[1]

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * ctx.power * x ** (ctx.power - 1), None


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0].cos() * 3


class Dense(Function):
    """Gradients of what needs one alone."""

    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w, b)
        return x @ w.t() + b

    @staticmethod
    def backward(ctx, gradient):
        x, w, b = ctx.saved_tensors
        by_x = gradient @ w if ctx.needs_input_grad[0] else None
        by_w = gradient.t() @ x if ctx.needs_input_grad[1] else None
        return by_x, by_w, gradient.sum(0) if ctx.needs_input_grad[2] else None


class Clamped(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward((x >= low) & (x <= high))
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, gradient):
        (inside,) = ctx.saved_tensors
        gradient = gradient.clone()
        gradient[~inside] = 0
        return gradient, None, None


class Attention(Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.scale = q.shape[-1] ** -0.5
        weights = torch.softmax(q @ k.transpose(-2, -1) * ctx.scale, -1)
        ctx.save_for_backward(q, k, v, weights)
        return weights @ v

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, weights = ctx.saved_tensors
        by_weights = gradient @ v.transpose(-2, -1)
        scores = weights * (by_weights - (by_weights * weights).sum(-1, keepdim=True)) * ctx.scale
        return scores @ k, scores.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ gradient


class FusedLoss(Function):
    @staticmethod
    def forward(ctx, hidden, weight, target):
        p = torch.softmax(hidden @ weight.t(), -1)
        rows = torch.arange(hidden.shape[0])
        by_logits = p.clone()
        by_logits[rows, target] -= 1
        by_logits /= hidden.shape[0]
        ctx.save_for_backward(by_logits @ weight, by_logits.t() @ hidden)
        return -p[rows, target].log().mean()

    @staticmethod
    def backward(ctx, gradient):
        by_hidden, by_weight = ctx.saved_tensors
        return gradient * by_hidden, gradient * by_weight, None


class Sparsemax(Function):
    @staticmethod
    def forward(ctx, x):
        z = torch.sort(x, -1, descending=True).values
        above = z.cumsum(-1) - 1
        count = (torch.arange(1, x.shape[-1] + 1, dtype=x.dtype) * z > above).sum(-1, keepdim=True)
        y = (x - above.gather(-1, count - 1) / count.to(x.dtype)).clamp(min=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        support = y > 0
        mean = (gradient * support).sum(-1, keepdim=True) / support.sum(-1, keepdim=True).to(y.dtype)
        return torch.where(support, gradient - mean, torch.zeros_like(gradient))


class Nearest(Function):
    @staticmethod
    def forward(ctx, x, codes):
        at = ((x[:, None] - codes) ** 2).sum(-1).argmin(1)
        ctx.save_for_backward(at)
        ctx.mark_non_differentiable(at)
        ctx.codes = codes.shape[0]
        return codes[at], at

    @staticmethod
    def backward(ctx, gradient, of_places):
        (at,) = ctx.saved_tensors
        return gradient, torch.zeros(ctx.codes, gradient.shape[1], dtype=gradient.dtype).index_add_(0, at, gradient)


class Sorted(Function):
    @staticmethod
    def forward(ctx, x):
        y, places = x.sort(-1)
        ctx.save_for_backward(places)
        return y

    @staticmethod
    def backward(ctx, gradient):
        return torch.zeros_like(gradient).scatter(-1, ctx.saved_tensors[0], gradient)


class Reduced(Function):
    """Its gradient is a function like itself, as of a sum over processes."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return Reduced.apply(gradient)


class Coupled(Function):
    """Reversible: what it needs is computed again from what it gave, with torch's own gradients."""

    @staticmethod
    def forward(ctx, x, w):
        a, b = x.chunk(2, -1)
        y = torch.cat([a + torch.tanh(b * w), b], -1)
        ctx.save_for_backward(y, w)
        return y

    @staticmethod
    def backward(ctx, gradient):
        y, w = ctx.saved_tensors
        of_a, of_b = gradient.chunk(2, -1)
        with torch.enable_grad():
            b, w = y.chunk(2, -1)[1].detach().requires_grad_(), w.detach().requires_grad_()
            by_b, by_w = torch.autograd.grad(torch.tanh(b * w), (b, w), of_a)
        return torch.cat([of_a, of_b + by_b], -1), by_w


class First(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * b

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


def scaled_by(factor):
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient * factor

    return Scaled.apply


quarter = scaled_by(0.25)
CONSTANT = torch.linspace(-1, 1, 16, dtype=D).reshape(4, 4)
TARGET = torch.tensor([1, 0, 2])
PROGRAMS = {
    "straight through": (lambda x: Quantised.apply(x * 3) * x, [(3, 4)]),
    "reversal": (lambda x: Reversed.apply(x * 3, 0.5) * x, [(3, 4)]),
    "a result is saved": (lambda x: Exponential.apply(x * 2) * x, [(3, 4)]),
    "its result is the result": (lambda x: Exponential.apply(x), [(3, 4)]),
    "one after another": (lambda x: Exponential.apply(Reversed.apply(Exponential.apply(x * 0.1), 0.3)) + x, [(3, 4)]),
    "of a product with a constant": (lambda x: Swish.apply(x @ CONSTANT), [(3, 4)]),
    "a chain": (lambda x: Swish.apply(Swish.apply(Swish.apply(x @ CONSTANT) @ CONSTANT) * 2), [(3, 4)]),
    "several results": (lambda x, w: Several.apply(x, w, 2.0), [(3, 4), (4,)]),
    "one of several results": (lambda x, w: Several.apply(x, w, 2.0)[0] * x, [(3, 4), (4,)]),
    "context set up": (lambda x: Cube.apply(x * 2, 3) * x, [(3, 4)]),
    "needs no gradient by its first": (lambda w, b: Dense.apply(torch.ones(3, 4, dtype=D), w, b).tanh(), [(5, 4), (5,)]),
    "a mask is saved": (lambda x: Clamped.apply(x * 2, -1.0, 1.0) * x, [(3, 4)]),
    "surrogate of a spike": (lambda x: Spike.apply(x * 2) * x, [(3, 4)]),
    "a number of a closure": (lambda x: quarter(x * 2) * x, [(3, 4)]),
    "attention": (lambda q, k, v: Attention.apply(q, k, v) + q, [(2, 5, 4), (2, 5, 4), (2, 5, 4)]),
    "gradients are computed forward": (lambda h, w: FusedLoss.apply(h.tanh(), w, TARGET), [(3, 4), (5, 4)]),
    "sparsemax": (lambda x: Sparsemax.apply(x * 2), [(3, 4)]),
    "nearest codes": (lambda x, codes: Nearest.apply(x, codes), [(6, 4), (3, 4)]),
    "sorted": (lambda x: Sorted.apply(x * 2) * x, [(3, 4)]),
    "of itself": (lambda x: Reduced.apply(x * x), [(3, 4)]),
    "reversible": (lambda x, w: Coupled.apply(Coupled.apply(x * 2, w), w), [(3, 4), (2,)]),
    "no gradient by its second": (lambda a, b: First.apply(a * 1, b) * a, [(3, 4), (3, 4)]),
}


def inputs_of(shapes):
    return [torch.randn(shape, dtype=D, generator=torch.Generator().manual_seed(at)).requires_grad_() for at, shape in enumerate(shapes)]


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_is_one_graph(program, gradients):
    function, shapes = program
    gradients(function, lambda: inputs_of(shapes))


def second_order(function, inputs):
    results = function(*inputs)
    results = [r for r in (results if isinstance(results, tuple) else (results,)) if r.requires_grad]
    loss = sum((r * (torch.arange(r.numel(), dtype=D).reshape(r.shape) + 1).cos()).sum() for r in results)
    first = torch.autograd.grad(loss, inputs, create_graph=True, allow_unused=True)
    penalty = loss + sum(g.pow(2).sum() for g in first if g is not None)
    return [None if g is None else g.detach() for g in (*first, *torch.autograd.grad(penalty, inputs, allow_unused=True))]


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_gradients_of_gradients(program):
    function, shapes = program
    want, got = second_order(function, inputs_of(shapes)), second_order(tenon.compile(function), inputs_of(shapes))
    assert [w is None for w in want] == [g is None for g in got]
    torch.testing.assert_close(got, want)
    assert tenon.stats()["graph_breaks"] == 0


def test_one_that_is_differentiated_once(gradients):
    gradients(lambda x: Once.apply(x * 2) * x, lambda: inputs_of([(3, 4)]))


class Decaying(Function):
    """Its gradient adds something, which torch does once to the sum of what comes from everywhere."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 + 0.1 * ctx.saved_tensors[0]


class Bounded(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clamp(-0.5, 0.5)


@pytest.mark.parametrize("function", [Decaying, Bounded])
def test_one_whose_gradient_is_not_linear_is_not_differentiated_twice(function):
    def call(x, y):
        return function.apply(x) * y

    x, y = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    compiled = tenon.compile(call)
    torch.testing.assert_close(torch.autograd.grad(compiled(x, y).sin().sum(), (x, y)), torch.autograd.grad(call(x, y).sin().sum(), (x, y)))
    with pytest.raises(RuntimeError, match="not linear in its gradient"):
        torch.autograd.grad(compiled(x, y).sin().sum(), (x, y), create_graph=True)


class State:
    """What the backwards below read besides what they are given."""

    factor = 2.0
    factors = {"first": [2.0, 3.0]}


FACTOR = 2.0


class Global(Function):
    @staticmethod
    def forward(ctx, x, *_):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * FACTOR


class OfClass(Global):
    @staticmethod
    def backward(ctx, gradient):
        return gradient * State.factor


class InContainers(Global):
    @staticmethod
    def backward(ctx, gradient):
        return gradient * State.factors["first"][-1] * len(State.factors["first"])


class OfLengths(InContainers):
    pass


class OfArgument(Function):
    @staticmethod
    def forward(ctx, x, factors):
        ctx.factors = factors
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factors[0], None


@pytest.mark.parametrize(
    "function, change",
    [
        (Global, lambda patch: patch.setitem(globals(), "FACTOR", 5.0)),
        (OfClass, lambda patch: patch.setattr(State, "factor", 5.0)),
        (InContainers, lambda patch: patch.setitem(State.factors, "first", [2.0, 5.0])),
        (OfLengths, lambda patch: patch.setitem(State.factors, "first", [2.0])),
    ],
)
def test_what_a_backward_reads_is_read_when_it_runs(function, change, monkeypatch):
    def gradient(call, changes):
        x = torch.ones(3, dtype=D, requires_grad=True)
        y = call(x)
        with monkeypatch.context() as patch:
            if changes:
                change(patch)
            return torch.autograd.grad(y.sum(), x)[0]

    def call(x):
        return function.apply(x)

    compiled = tenon.compile(call)
    torch.testing.assert_close(gradient(compiled, False), gradient(call, False))
    with pytest.raises(RuntimeError, match=f"the backward of {function.__name__} reads what was changed"):
        gradient(compiled, True)
    for changes in (True, False, True):  # by torch
        torch.testing.assert_close(gradient(compiled, changes), gradient(call, changes))
    assert tenon.stats()["graph_breaks"] == 1


class OfGradMode(Global):
    @staticmethod
    def backward(ctx, gradient):
        return gradient * (2 if torch.is_grad_enabled() else 5)


class OfDefaults(Global):
    @staticmethod
    def backward(ctx, gradient):
        return gradient * (2 if torch.get_default_dtype() is torch.float32 else 5)


@pytest.mark.parametrize("function", [OfGradMode, OfDefaults])
def test_state_of_torchs_that_a_backward_asks_for_is_that_of_the_walk(function):
    def gradients(run):
        x = torch.ones(3, dtype=D, requires_grad=True)
        y = run(x)
        try:
            torch.set_default_dtype(torch.float64)
            return [torch.autograd.grad(y.sum(), x, retain_graph=True, create_graph=again)[0].detach() for again in (False, True)]
        finally:
            torch.set_default_dtype(torch.float32)

    def call(x):
        return function.apply(x)

    torch.testing.assert_close(gradients(tenon.compile(call)), gradients(call))
    assert tenon.stats()["graph_breaks"] == 1


def test_what_a_backward_reads_of_an_argument_that_may_change():
    def call(x, factors):
        return OfArgument.apply(x, factors)

    compiled = tenon.compile(call)
    factors, found = [2.0, 3.0], []
    for run in (call, compiled, compiled):
        x = torch.ones(3, dtype=D, requires_grad=True)
        y = run(x, factors)
        factors[0] += 1
        found.append(torch.autograd.grad(y.sum(), x)[0][0].item())
    assert found == [3.0, 4.0, 5.0]
    assert tenon.stats()["graph_breaks"] == 1
    tenon.reset()
    x = torch.ones(3, dtype=D, requires_grad=True)
    assert torch.autograd.grad(compiled(x, (2.0, 3.0)).sum(), x)[0].tolist() == [2.0] * 3
    assert tenon.stats()["graph_breaks"] == 0


def test_what_a_backward_reads_and_the_call_has_written(monkeypatch):
    def call(x):
        State.factor = State.factor + 1
        return OfClass.apply(x)

    monkeypatch.setattr(State, "factor", 2.0)
    compiled = tenon.compile(call)
    for factor in (7.0, 9.0):
        x = torch.ones(3, dtype=D, requires_grad=True)
        y = compiled(x)
        State.factor = factor
        assert torch.autograd.grad(y.sum(), x)[0].tolist() == [factor] * 3
