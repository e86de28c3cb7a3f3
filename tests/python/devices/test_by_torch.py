"""Nodes on a device that no backend takes: torch computes them itself, by the functions that the ops' entries name."""
import weakref

import pytest
import torch
import torch.nn.functional as F

import tenon
from tenon import _by_torch

X = torch.randn(3, 4)


@pytest.fixture
def by_torch(check, device):
    """Runs a function with a backend of the host alone, on a device that another backend has brought."""
    tenon.compile(lambda x: x + 1)(X.to(device))

    def run(fn, args):
        tenon.reset()
        compiled = tenon.compile(fn, backend="llvm")
        for _ in range(2):
            mine, eager = ([x.to(device, copy=True) for x in args] for _ in range(2))
            check.same(compiled(*mine), fn(*eager))
            check.same(mine, eager)
        stats = tenon.stats()
        assert stats["backends"]["python"]["runs"] > 0 and stats["eager_fallbacks"] == 0, stats

    return run


@pytest.mark.parametrize("fn", [
    lambda x: torch.relu(x + 1) * 2,
    lambda x: x.softmax(-1),
    lambda x: (x.sum(0), x.mean(1), x.amax(1)),
    lambda x: x @ x.t(),
    lambda x: F.layer_norm(F.gelu(x), (4,)),
    lambda x: torch.cat([x, x + 1]),
    lambda x: torch.where(x > 0, x, 0.0),
    lambda x: x.cumsum(0),
    lambda x: x.sort(-1),
    lambda x: x.double() / 3,
    lambda x: torch.full((3, 4), 2.0, device=x.device) - x,
    lambda x: (x + 1).reshape(-1).exp().split(6),
    lambda x: (x + 1).view(-1).view(3, 4).cumsum(0).t().cumsum(0),
    lambda x: x.cpu() + x.to("cpu").sigmoid() + (x * 2).cpu(),
], ids=str)
def test_ops(by_torch, fn):
    by_torch(fn, (X,))


@pytest.mark.parametrize("fn", [
    lambda x, n: F.binary_cross_entropy(x.sigmoid(), x.sigmoid()),
    lambda x, n: F.multilabel_margin_loss(x, n),
], ids=["binary_cross_entropy", "multilabel_margin_loss"])
def test_an_argument_that_is_only_looked_at(by_torch, fn):
    """By a node whose result nobody reads."""
    by_torch(fn, (X, torch.tensor([[1, 3, -1, 0], [2, -1, 0, 0], [-1, 0, 1, 2]])))


def test_convolution(by_torch):
    by_torch(lambda x, w: F.conv2d(x, w, padding=1, stride=2).relu(), (torch.randn(1, 3, 8, 8), torch.randn(2, 3, 3, 3)))


def test_writes(by_torch):
    def fn(x):
        x.mul_(2)
        return x + 1

    by_torch(fn, (X,))


def test_what_torch_has_no_function_for_runs_in_the_hosts_memory(check, device):
    tenon.compile(lambda x: x + 1)(X.to(device))
    compiled = tenon.compile(lambda x: x[x > 0] * 2, backend="llvm")
    for _ in range(2):
        check.same(compiled(X.to(device)), (X[X > 0] * 2).to(device))
    assert tenon.stats()["eager_fallbacks"] == 0, tenon.stats()


@pytest.mark.parametrize("options", [{}, {"padding": 1, "stride": 2}, {"dilation": 2, "groups": 2}, {"stride": 3, "padding": (0, 2)}], ids=str)
def test_the_gradient_of_a_picture(check, device, options):
    """Against the CPU's."""
    tenon.compile(lambda x: x + 1)(X.to(device))
    x, w = torch.randn(2, 4, 9, 10), torch.randn(6, 4 // options.get("groups", 1), 3, 2)

    def fn(x, w):
        return F.conv2d(x, w, **options).sin()

    results = []
    for way, place in ((fn, "cpu"), (tenon.compile(fn, backend="llvm"), device)):
        picture = x.clone().to(place).requires_grad_()
        made = way(picture, w.to(place))
        made.backward(made.detach())
        results.append([made.detach().cpu(), picture.grad.cpu()])
    check.same(results[1], results[0])
    stats = tenon.stats()
    assert (stats["graph_breaks"], stats["eager_fallbacks"]) == (0, 0) and stats["backends"]["python"]["runs"] > 0, stats


@pytest.mark.parametrize("options", [{}, {"padding": 1, "stride": 2}, {"dilation": 2, "groups": 2}, {"stride": 3, "padding": (0, 2)}, {"padding": (3, 1)}], ids=str)
def test_both_gradients_of_a_convolution_are_one_call(check, device, monkeypatch, options):
    calls, both = [], _by_torch.conv_gradients
    monkeypatch.setattr(_by_torch, "conv_gradients", lambda *args: calls.append(args) or both(*args))
    tenon.compile(lambda x: x + 1)(X.to(device))
    x, w = torch.randn(2, 4, 9, 10), torch.randn(6, 4 // options.get("groups", 1), 3, 2)

    def fn(x, w):
        return torch.autograd.grad(F.conv2d(x, w, **options).sin().sum(), (x, w))

    given = [t.to(device).requires_grad_() for t in (x, w)]
    compiled = tenon.compile(fn, backend="llvm")
    for _ in range(2):
        check.same(compiled(*given), fn(*given))
    stats = tenon.stats()
    assert (stats["graph_breaks"], stats["eager_fallbacks"], len(calls)) == (0, 0, 2), stats


@pytest.mark.parametrize("options", [{"is_causal": True}, {"scale": 0.3}, {"attn_mask": torch.ones(5, 5, dtype=torch.bool).tril()}], ids=["causal", "scale", "mask"])
def test_the_gradients_of_an_attention_are_one_call(device, monkeypatch, options):
    calls, gradients = [], _by_torch.attention_gradients
    monkeypatch.setattr(_by_torch, "attention_gradients", lambda *args, **named: calls.append(args) or gradients(*args, **named))
    tenon.compile(lambda x: x + 1)(X.to(device))
    options = {name: given.to(device) if isinstance(given, torch.Tensor) else given for name, given in options.items()}

    def fn(q, k, v):
        return torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, **options).sin().sum(), (q, k, v))

    given = [torch.randn(2, 3, 5, 4).to(device).requires_grad_() for _ in range(3)]
    compiled = tenon.compile(fn, backend="llvm")
    for _ in range(2):
        torch.testing.assert_close(compiled(*given), fn(*given))
    stats = tenon.stats()
    assert (stats["graph_breaks"], stats["eager_fallbacks"], len(calls)) == (0, 0, 2), stats


def test_gradients_of_two_convolutions_alike(check, device):
    """The gradient of their sum belongs to both."""
    tenon.compile(lambda x: x + 1)(X.to(device))
    x, y, v, w = (torch.randn(2, 3, 6, 6), torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3), torch.randn(4, 3, 3, 3))

    def fn(*given):
        x, y, v, w = given
        return torch.autograd.grad((F.conv2d(x, v) + F.conv2d(y, w)).sin().sum(), given)

    given = [t.to(device).requires_grad_() for t in (x, y, v, w)]
    check.same(tenon.compile(fn, backend="llvm")(*given), fn(*given))


def test_a_view_goes_with_the_function_that_reads_it(by_torch):
    by_torch(lambda x, y: x.t() @ y, (torch.randn(3, 4), torch.randn(3, 5)))
    assert tenon.stats()["backends"]["python"]["steps"] == 1


def test_results_stay_where_torch_has_them(check, device, monkeypatch):
    """The next function reads them there, and nobody holds them when all have run."""
    given, made, targets, cumsum = [], [], [], torch.cumsum

    def noted(x, *args, **options):
        targets.append(options.get("out"))
        given.append(x.data_ptr())
        result = cumsum(x, *args, **options)
        made.append((result.data_ptr(), weakref.ref(result)))
        return result

    tenon.compile(lambda x: x + 1)(X.to(device))
    compiled = tenon.compile(lambda x: x.cumsum(0).cumsum(1).cumsum(0) + 1, backend="llvm")
    monkeypatch.setattr(torch, "cumsum", noted)
    got = compiled(X.to(device))
    monkeypatch.undo()
    check.same(got, X.to(device).cumsum(0).cumsum(1).cumsum(0) + 1)
    assert targets == [None] * 3
    assert given[1:] == [address for address, _ in made[:2]]
    assert len(made) == 3 and all(result() is None for _, result in made)
