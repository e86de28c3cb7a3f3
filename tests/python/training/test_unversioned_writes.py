"""Writes that no version counts (through `.data`, through a view of NumPy's) between a call and its gradients: these read what torch's nodes have saved, which
is written where that is the tensor itself, and is not where it was computed from it."""
import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

FUNCTIONS = {
    "square": lambda p, x: p * p,
    "product": lambda p, x: p * x,
    "sine of a product": lambda p, x: (p * x).sin(),
    "exponential": lambda p, x: p.exp(),
    "relu of a product": lambda p, x: (p * x).relu(),
    "gelu": lambda p, x: F.gelu(p),
    "silu of a product": lambda p, x: F.silu(p * x),
    "softmax": lambda p, x: (p * x).log_softmax(1),
    "choice": lambda p, x: torch.where(x > 0, p * p, p.exp()),
    "quotient": lambda p, x: x / p,
    "quotient by a norm": lambda p, x: p / p.norm(),
    "normalised rows": lambda p, x: F.normalize(p * x, dim=1),
    "largest": lambda p, x: (p * x).amax(1),
    "layer norm": lambda p, x: F.layer_norm(p * x, (4,)),
    "layer norm by parameters": lambda p, x: F.layer_norm(x, (4,), p[0], p[1]),
    "linear": lambda p, x: F.linear(x, p).relu(),
    "cast": lambda p, x: (p.float() * x.float()).sin(),
    "squared error": lambda p, x: F.mse_loss(p * x, x),
    "binary cross entropy": lambda p, x: F.binary_cross_entropy_with_logits(p * x, x.sigmoid()),
    "views": lambda p, x: (p.view(4, 3) * x.view(4, 3)).sin(),
    "expanded": lambda p, x: (p[:, :1].expand(3, 4) * x).tanh(),
    "of a result": lambda p, x: ((y := p.exp()), (y * y).sin()),
    "two results": lambda p, x: (p * x, (p * x).exp().sin()),
    "variance": lambda p, x: (p * x).var(0),
    "error function": lambda p, x: (p * x).erf(),
}
WRITES = {
    "data of a leaf": lambda p, x, results: p.data.mul_(3).add_(0.5),
    "data of an input": lambda p, x, results: x.data.mul_(3).sub_(0.5),
    "data of a result": lambda p, x, results: results[0].data.mul_(2).add_(0.25),
    "view of NumPy's": lambda p, x, results: p.detach().numpy().__imul__(10),
}


def gradient(fn, write):
    p = torch.linspace(0.1, 1.3, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
    x = torch.linspace(-1, 2, 12, dtype=torch.float64).reshape(3, 4)
    results = fn(p, x)
    results = results if isinstance(results, tuple) else (results,)
    write(p, x, results)
    sum((result * torch.arange(1.0, 1 + result.numel()).reshape(result.shape)).sum() for result in results).backward()
    return p.grad


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("fn", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_gradients_read_what_torch_has_saved(fn, write, tier):
    want = gradient(fn, write)
    compiled = tenon.compile(fn)
    for _ in range(2):
        torch.testing.assert_close(gradient(compiled, write), want, rtol=1e-5, atol=1e-7, equal_nan=True)
