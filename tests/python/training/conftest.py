"""What tests of gradients share: a function run plainly and compiled, and all that a training loop can see of both."""
import pytest

import tenon
from tenon import _tenon

torch = pytest.importorskip("torch")


def tensors_in(result):
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    return [t for part in result for t in tensors_in(part)] if isinstance(result, (list, tuple)) else []


def loss_of(results):
    """A number in which every element of every result that requires grad counts differently."""
    loss = 0
    for at, t in enumerate(t for t in tensors_in(results) if t.requires_grad):
        loss = loss + (t * (torch.arange(t.numel(), dtype=t.dtype).reshape(t.shape) + at + 1).cos()).sum()
    return loss


@pytest.fixture
def gradients(check):
    """Runs a function plainly and compiled, three times, on inputs that `make` gives anew, and compares results, what they say of their history, and
    the gradients of all inputs. `graphs`: how many the compiled function may be; None for any number."""

    def run(fn, make, graphs=1, **options):
        compiled = tenon.compile(fn, **options)
        for _ in range(3):
            plain, twin = make(), make()
            want, got = fn(*plain), compiled(*twin)
            check.same(got, want)
            for g, w in zip(tensors_in(got), tensors_in(want), strict=True):
                assert (g.requires_grad, g.grad_fn is None, g.is_leaf, g._is_view()) == (w.requires_grad, w.grad_fn is None, w.is_leaf, w._is_view())
            for loss in (loss_of(want), loss_of(got)):
                if isinstance(loss, torch.Tensor):
                    loss.backward()
            for p, t in zip(tensors_in(plain), tensors_in(twin), strict=True):
                check.same(t, p)
                assert (t.grad is None) == (p.grad is None)
                if p.grad is not None:
                    torch.testing.assert_close(t.grad, p.grad)
        if graphs is not None:
            assert (tenon.stats()["graphs"], tenon.stats()["eager_fallbacks"]) == (graphs, 0)
        return compiled

    return run


@pytest.fixture(params=["native", "autograd.Function"])
def tier(request):
    """What a compiled function is in torch's graph: a native node, or an ``autograd.Function``."""
    _tenon.use_native_nodes(request.param == "native")
    assert tenon.stats()["autograd"]["tier"] == request.param
    yield request.param
    _tenon.use_native_nodes(True)


@pytest.fixture
def leaf():
    """Makes a leaf of that shape, in float64, with the same values each time."""

    def make(*shape, seed=0, grad=True):
        values = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        return values.requires_grad_(grad)

    return make
