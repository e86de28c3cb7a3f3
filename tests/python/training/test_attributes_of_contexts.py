"""What functions of the program's keep as attributes of their context is theirs: torch lets go of saved tensors alone."""
import pytest

import tenon
from tenon import _tenon

torch = pytest.importorskip("torch")
from tests.python.training.functions import Exponential, Spike  # noqa: E402

D = torch.float64
Function = torch.autograd.Function


class KeepsItsResult(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x.exp()
        return ctx.y * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.y


class KeepsBoth(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.y = x.exp()
        return ctx.y * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.y + 0 * ctx.saved_tensors[0]


@pytest.fixture(params=["native", "function"])
def tier(request):
    _tenon.use_native_nodes(request.param == "native")
    yield
    _tenon.use_native_nodes(True)


@pytest.mark.parametrize(
    "call",
    [lambda x: Spike.apply(x).sum(), lambda x: (Spike.apply(x) + KeepsItsResult.apply(-x)).reshape(-1), lambda x: Spike.apply(Spike.apply(x)), lambda x: Spike.apply(x) * x,
     lambda x: KeepsBoth.apply(x).sum(), lambda x: Exponential.apply(x), lambda x: Spike.apply(x.exp())],
    ids=["an input", "a value", "a chain", "beside a product", "beside what is saved", "saved", "of a saved result"],
)
def test_attributes_of_a_context_are_not_let_go(call, tier):
    def gradients(run):
        x = torch.linspace(-1, 1, 5, dtype=D).requires_grad_()
        y = run(x)
        found = []
        for _ in range(3):
            try:
                y.sum().backward()
            except RuntimeError as error:
                assert "second time" in str(error)
                break
            found.append(x.grad.clone())
        return found

    torch.testing.assert_close(gradients(tenon.compile(call)), gradients(call))
    assert tenon.stats()["graph_breaks"] == 0


def test_an_attribute_of_a_context_that_was_written_is_refused(tier):
    x = torch.linspace(-1, 1, 5, dtype=D).requires_grad_()
    y = tenon.compile(lambda x: Spike.apply(x).sum())(x)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
