"""Functions of NumPy beside tensors that require grad: on sizes, on constants, on what was detached. One graph, NumPy's warnings and plain execution's gradients."""
import warnings

import pytest

import tenon

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


def on_sizes(net, x):
    if (np.array(x.shape[1:]) % np.power(2, 2)).any():
        raise ValueError("sizes")
    return net(x)[:, : int(np.ceil(x.shape[1] / 3))]


def on_detached(net, x):
    y = net(x)
    return y * float(1 / (1 + np.abs(y.detach().numpy()).sum()))


def on_inputs(net, x):
    y = net(x).exp()
    mean = np.abs(x.numpy()).mean(axis=1, keepdims=True).astype(np.float32)
    z = torch.tanh(y * torch.from_numpy(mean))
    return z, torch.from_numpy(np.argsort(z.detach().numpy(), axis=1))


def that_warns(net, x):
    return net(x) * torch.from_numpy(np.nan_to_num(np.log(x.numpy() - 10)))


def unread_that_warns(net, x):
    return net(x) * 2, np.ones(4, np.float32) / (x.numpy()[0] * 0)


def that_ignores(net, x):
    with np.errstate(divide="ignore", invalid="ignore"):
        return net(x) * 2, np.ones(4, np.float32) / (x.numpy()[0] * 0)


def on_scalars(net, x):
    return net(x) * int(np.int64(7) // np.int64(x.shape[0] - 3))


def in_gradients(net, x):
    factors = torch.from_numpy(np.exp(x.numpy()))
    (gradient,) = torch.autograd.grad((net(x) ** 2 * factors).sum(), net.weight, create_graph=True)
    return gradient * 2


def seen_by(fn, net, x):
    net.zero_grad()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        results = fn(net, x)
    results = results if isinstance(results, tuple) else (results,)
    sum((t**2).sum() for t in results if isinstance(t, torch.Tensor) and t.requires_grad).backward()
    values = [np.asarray(t.detach() if isinstance(t, torch.Tensor) else t) for t in results] + [p.grad.numpy() for p in net.parameters()]
    return values, [getattr(t, "requires_grad", None) for t in results], sorted(str(w.message) for w in given)


@pytest.mark.parametrize("fn", [on_sizes, on_detached, on_inputs, that_warns, unread_that_warns, that_ignores, on_scalars, in_gradients])
def test_values_gradients_and_warnings(fn):
    torch.manual_seed(0)
    net = nn.Linear(4, 4)
    compiled = tenon.compile(fn)
    tenon.reset()
    for rows in (2, 2, 5, 3, 2):
        x = torch.randn(rows, 4)
        (values, tracked, given), (ours, our_tracked, we_gave) = seen_by(fn, net, x), seen_by(compiled, net, x)
        assert our_tracked == tracked and we_gave == given
        for value, our in zip(values, ours, strict=True):
            np.testing.assert_allclose(our, value, rtol=1e-4, atol=1e-6)
    assert tenon.stats()["graphs"] > 0 and tenon.stats()["graph_breaks"] == 0
