"""Results of a compiled function get no gradient, since another function gives none: torch gives zeros to functions of the program's, and nothing to its own."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tests.python.training.functions import Swish  # noqa: E402

pytestmark = pytest.mark.usefixtures("tier")

D = torch.float64
Function = torch.autograd.Function


class First(Function):
    """No gradient by its second."""

    @staticmethod
    def forward(ctx, a, b):
        return a * b

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Decaying(Function):
    """Shows that it is called: its gradient of zeros is no zeros."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x.cos() + 0.1 * x * x


class Pair(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return x * y, x + y

    @staticmethod
    def backward(ctx, by_product, by_sum):
        (x,) = ctx.saved_tensors
        return by_product + by_sum + x, by_sum


class Plain(Function):
    """Asks for no zeros."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return None if gradient is None else gradient * 2


PROGRAMS = {
    "one": lambda x, y: Swish.apply(x),
    "is called": lambda x, y: Decaying.apply(x),
    "before it": lambda x, y: Decaying.apply((x * y).exp()),
    "behind it": lambda x, y: Decaying.apply(x).exp() * 2,
    "both sides": lambda x, y: (Decaying.apply(x.tanh() * 2) * x).exp(),
    "beside it": lambda x, y: Decaying.apply(x) + y * y,
    "one behind another": lambda x, y: Decaying.apply(Decaying.apply(x) * y),
    "two of them": lambda x, y: Decaying.apply(x) + Decaying.apply(x * 2),
    "several results": lambda x, y: Pair.apply(x * 2, y)[0],
    "both results": lambda x, y: sum(Pair.apply(x * 2, y)),
    "summed": lambda x, y: Decaying.apply(x.sum(0, keepdim=True)) + y,
    "zeros on the way": lambda x, y: Decaying.apply(x.round() * y),
    "no function": lambda x, y: x * y,
}
LINEAR = {  # in their gradients, as functions are that have a second derivative
    "one": PROGRAMS["one"],
    "both sides": lambda x, y: (Swish.apply(x.tanh() * 2) * x).exp(),
    "one behind another": lambda x, y: Swish.apply(Swish.apply(x) * y),
    "two of them": lambda x, y: Swish.apply(x) + Swish.apply(x * 2),
    "no function": PROGRAMS["no function"],
}


def leaves(count=3):
    return [torch.randn(3, 4, dtype=D, generator=torch.Generator().manual_seed(at)).requires_grad_() for at in range(count)]


def by_backward(function):
    a, x, y = leaves()
    First.apply(a, function(x, y)).sum().backward()
    return a.grad, x.grad, y.grad


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_gradients(program):
    compiled = tenon.compile(program)
    for _ in range(2):
        want, got = by_backward(program), by_backward(compiled)
        assert [w is None for w in want] == [g is None for g in got]
        torch.testing.assert_close(got, want)
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_whole_steps(program):
    """The graph ends at a walk that comes to such a function."""
    a, x, y = leaves()

    def step(a, x, y):
        First.apply(a, program(x, y)).sum().backward()

    for run in (step, tenon.compile(step)):
        want = [w if w is None else w.clone() for w in by_backward(program)]
        a.grad = x.grad = y.grad = None
        run(a, x, y)
        assert [w is None for w in want] == [t.grad is None for t in (a, x, y)]
        torch.testing.assert_close([a.grad, x.grad, y.grad], want)


@pytest.mark.parametrize("program", LINEAR.values(), ids=LINEAR)
def test_gradients_of_gradients(program):
    def second(function):
        a, x, y = leaves()
        loss = First.apply(a, function(x, y)).sum() + (x * y).sum()
        first = torch.autograd.grad(loss, [a, x, y], create_graph=True)
        return [g.detach() for g in (*first, *torch.autograd.grad(loss + sum(g.pow(2).sum() for g in first), [a, x, y]))]

    torch.testing.assert_close(second(tenon.compile(program)), second(program))


def test_a_module_in_a_loop():
    def trained(level):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 4, dtype=D), nn.Tanh())
        optimizer = torch.optim.SGD(net.parameters(), 0.1)

        def forward(x):
            return Decaying.apply(net(x))

        run = tenon.compile(forward) if level else forward
        for step in range(4):
            optimizer.zero_grad()
            a, x, _ = leaves()
            (First.apply(a, run(x)).sum() if step % 2 else run(x).sum()).backward()
            optimizer.step()
        return [p.detach() for p in net.parameters()]

    torch.testing.assert_close(trained(True), trained(False))


def test_one_that_asks_for_no_zeros_is_left_to_torch():
    with pytest.raises((RuntimeError, tenon.Error), match="leave it to torch"):
        by_backward(tenon.compile(lambda x, y: Plain.apply(x * 2)))
