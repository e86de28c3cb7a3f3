"""Gradients of tensors of a device: compiled functions under torch's autograd engine, and whole steps."""
import copy

import pytest
import torch
import torch.nn.functional as F

import tenon

X, W, T = torch.randn(6, 8), torch.randn(8, 8), torch.tensor([0, 3, 7, 1, 2, 5])


def weighed(result):
    """A scalar of it that gives each element its own gradient, whatever the values: they say nothing of their rounding."""
    return (result * torch.arange(result.numel(), dtype=result.dtype).view_as(result).cos().to(result.device)).sum()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.inner, self.norm, self.outer = torch.nn.Embedding(9, 8), torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.Linear(16, 8)

    def forward(self, x, t):
        return self.outer(F.dropout(F.gelu(self.norm(self.inner(x + self.tokens(t)))), 0.25, self.training))


@pytest.fixture
def nets(device):
    """Two equal networks on the device."""
    torch.manual_seed(0)
    net = Net()
    return net.to(device), copy.deepcopy(net).to(device)


@pytest.mark.parametrize("fn", [
    lambda x, w: (x @ w).tanh().sum(),
    lambda x, w: F.softmax(x, -1) * w[:6],
    lambda x, w: (x.exp().sum(0), (x * w[0]).amax(1)),
    lambda x, w: x[T.to(x.device) % 6].cumsum(0) + w[:6].sort(1).values,
    lambda x, w: torch.zeros_like(x).scatter_add(1, T.to(x.device)[:, None].expand(6, 8), x) * w[1],
    lambda x, w: x.gather(1, T.to(x.device)[:, None]) * w[:6, :1].cos().sum(),
    lambda x, w: x.t()[::2] + w[:4, :6],
    lambda x, w: x.cpu().sin().to(x.device) * w[0],
    lambda x, w: F.layer_norm(x, (8,), w[0], w[1]).double().float(),
    lambda x, w: torch.where(x > 0, x, x * w[2]) / (1 + w[3].abs()),
    lambda x, w: F.max_pool2d(x[None], 2) * F.max_pool2d(w[None], 3, 2, 1)[:, 1:],
], ids=str)
def test_gradients(check, device, fn):
    compiled = tenon.compile(fn)
    for call in range(3):
        results = []
        for way in (fn, compiled):
            x, w = (t.clone().to(device).requires_grad_() for t in (X, W))
            made = way(x, w)
            loss = sum(map(weighed, made if isinstance(made, tuple) else (made,)))
            loss.backward(torch.ones_like(loss), retain_graph=True)
            loss.backward()
            results.append([made, x.grad, w.grad])
        check.same([t.detach() for t in results[1][1:]], [t.detach() for t in results[0][1:]])
        check.same(results[1][0], results[0][0])
    assert (tenon.stats()["graph_breaks"], tenon.stats()["eager_fallbacks"]) == (0, 0), tenon.stats()


def test_gradients_of_gradients(check, device):
    fn = lambda x, w: ((x @ w).sigmoid() * x).mean()  # noqa: E731
    results = []
    for way in (fn, tenon.compile(fn)):
        x, w = (t.to(device).requires_grad_() for t in (X, W))
        first = torch.autograd.grad(way(x, w), (x, w), create_graph=True)
        results.append([t.detach() for t in (*first, *torch.autograd.grad(first[0].square().sum() + first[1].sum(), (x, w)))])
    check.same(results[1], results[0])


MASK = torch.ones(3, 3, dtype=torch.bool).tril()


@pytest.mark.parametrize("attend", [
    lambda q, k, v, b: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    lambda q, k, v, b: F.scaled_dot_product_attention(q, k, v, attn_mask=MASK.to(q.device), scale=0.3),
    lambda q, k, v, b: F.scaled_dot_product_attention(q, k[:, :1], v[:1], attn_mask=b),
    lambda q, k, v, b: F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True),
    lambda q, k, v, b: F.scaled_dot_product_attention(q, k[:, :, :0], v[:, :, :0]),
], ids=["causal", "mask", "bias", "grouped", "no keys"])
def test_gradients_of_attention(check, device, attend):
    results = []
    torch.manual_seed(0)
    values = [torch.randn(2, 2, 3, 4) for _ in range(3)] + [torch.randn(3, 3)]
    for way in (attend, tenon.compile(attend)):
        operands = [t.to(device).requires_grad_() for t in values]
        made = way(*operands)
        results.append([made.detach(), *torch.autograd.grad(weighed(made), operands, allow_unused=True)])
    for got, want in zip(results[1], results[0]):
        assert (got is None) == (want is None)
        if want is not None:
            torch.testing.assert_close(got, want)
    assert tenon.stats()["graph_breaks"] == 0, tenon.stats()


def test_gradients_of_gradients_of_attention(device):
    """In float64: in float32 rounding alone takes eager itself past the tolerance, whose second gradients are large."""
    attend = lambda q, w: F.scaled_dot_product_attention(q, q * 2, q @ w, is_causal=True)  # noqa: E731
    results = []
    for way in (attend, tenon.compile(attend)):
        q, w = X.double().view(2, 3, 8).to(device).requires_grad_(), W.double().to(device).requires_grad_()
        first = torch.autograd.grad(weighed(way(q, w)), (q, w), create_graph=True)
        results.append(torch.autograd.grad(first[0].square().sum() + first[1].sum(), (q, w)))
    torch.testing.assert_close(results[1], results[0])


def test_a_gradient_that_lies_otherwise(check, device):
    fn = lambda x, w: x @ w  # noqa: E731
    results = []
    for way in (fn, tenon.compile(fn)):
        x, w = (t.to(device).requires_grad_() for t in (X, W))
        way(x, w).backward(torch.arange(48.0).view(8, 6).to(device).t())
        results.append([x.grad, w.grad])
    check.same(results[1], results[0])


def train(net, run, device, steps=4):
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    losses = []
    for number in range(steps):
        torch.manual_seed(number)
        losses.append(run(net, optimizer, X.to(device), T.to(device)))
    return [*losses, *(p.detach() for p in net.parameters()), *(p.grad for p in net.parameters())]


def step(net, optimizer, x, t):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x, t), t)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


def test_a_compiled_network_in_an_eager_loop(check, device, nets):
    plain, twin = nets
    compiled = tenon.compile(twin)
    want = train(plain, step, device)
    got = train(twin, lambda net, *rest: step(compiled, *rest), device)
    check.same(got, want)
    assert (tenon.stats()["graphs"], tenon.stats()["graph_breaks"]) == (1, 0), tenon.stats()


def test_a_whole_step(check, device, nets):
    plain, twin = nets
    check.same(train(twin, tenon.compile(step), device), train(plain, step, device))
    assert (tenon.stats()["graph_breaks"], tenon.stats()["eager_fallbacks"]) == (0, 0), tenon.stats()
