"""Gradients of gradients as results of a segment see them: retained, by hooks, and whether they require grad."""
import pytest

import tenon
from tenon import _tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402


@pytest.fixture(params=["native", "autograd.Function"], autouse=True)
def tier(request):
    _tenon.use_native_nodes(request.param == "native")
    yield
    _tenon.use_native_nodes(True)


def linear(x, w):
    h = x * w
    return h, h * 3 + 1, h.sum()


def chained(x, w):
    h = (x @ w).tanh()
    k = (h @ w).exp()
    return h, k, (k @ w + h).sum()


def cheap(x, w):
    """Its own node computes the result again."""
    h = x * w
    return h, h.tanh()


def beside_a_constant(x, w):
    h = x @ w
    with torch.no_grad():
        k = h.relu()
    return h, (k * h).sum()


def functions(x, w):
    h = x * w
    return h.sigmoid(), h.softmax(-1), h.abs().sqrt(), h.norm(dim=1), h.logsumexp(1), x / w, h.std(1), F.elu(h), F.layer_norm(x, (4,), w[0]), x @ w


def each(number):
    def f(x, w):
        return (functions(x, w)[number],)

    return f


PROGRAMS = [linear, chained, cheap, beside_a_constant, *map(each, range(10))]


def weights(t):
    return (torch.arange(t.numel(), dtype=t.dtype).reshape(t.shape) + 1).cos()


def loss_of(tensors):
    return sum((t * t * weights(t)).sum() for t in tensors if t is not None and t.requires_grad)


def retained(results, x, w, linear_loss):
    """The gradients of a penalty on the gradients of the results."""
    for t in results:
        t.retain_grad()
    loss = sum((t * weights(t)).sum() for t in results) if linear_loss else loss_of(results)
    loss.backward(create_graph=True)
    first = [t.grad for t in (*results, x, w)]
    for t in (*results, x, w):
        t.grad = None
    penalty = loss_of(first)
    if isinstance(penalty, torch.Tensor):
        penalty.backward()
    return [g.detach() for g in first], [g.requires_grad for g in first], [t.grad for t in (*results, x, w)]


def hooked(results, x, w, linear_loss):
    seen = []
    for t in results:
        t.register_hook(lambda g: seen.append(g) or g * 2)
    loss = sum((t * weights(t)).sum() for t in results) if linear_loss else loss_of(results)
    loss.backward(create_graph=True)
    first = list(seen)
    x.grad = w.grad = None
    penalty = loss_of(first)
    if isinstance(penalty, torch.Tensor):
        penalty.backward()
    return [g.detach() for g in first], len(seen), x.grad, w.grad


@pytest.mark.parametrize("linear_loss", [True, False])
@pytest.mark.parametrize("situation", [retained, hooked])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph:UserWarning")
def test_results_see_second_gradients(program, situation, linear_loss, leaf):
    compiled, told = tenon.compile(program), []
    for f in (program, compiled, compiled):
        x, w = leaf(4, 4), leaf(4, 4, seed=1)
        told.append(situation(f(x, w), x, w, linear_loss))
    torch.testing.assert_close(told[1], told[0])
    torch.testing.assert_close(told[2], told[0])
    assert tenon.stats()["graph_breaks"] == 0
