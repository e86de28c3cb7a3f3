"""Gradients through sizes that depend on data: what a mask chooses, the places of what is true, experts that take some rows each."""
import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


def chosen(x, w):
    return (x @ w)[x > 0].tanh().sum()


def chosen_rows(x, w):
    h = x @ w
    return h[h.sum(1) > 0] * 2, h.sum()


def places(x, w):
    rows, columns = torch.where(x > 0)
    return (x[rows, columns] * w[columns, 0]).exp()


def chosen_twice(x, w):
    a, b = x[x > 0], w[w < 0]
    return a.sum() * b, b.exp().mean() - a


def a_mean_of_what_is_chosen(x, w):
    return (F.mse_loss(x, x @ w, reduction="none")[x > 0.2]).mean()


def products_of_rows(x, w):
    rows = x[x[:, 0] > -0.5]
    return F.softmax(rows @ w, -1) @ w.t(), F.layer_norm(rows, (4,)).sum(0)


def added_back(x, w):
    out = torch.zeros_like(x)
    for part in range(3):
        rows = torch.where(x[:, 0].argsort() % 3 == part)[0]
        out.index_add_(0, rows, (x[rows] @ w) * (part + 1))
    return out.tanh()


def masked(x, w):
    return torch.masked_select(x * w, x > 0) * 3


def joined(x, w):
    h = x * w
    return torch.cat([h[h > 0].exp(), h[h < 0]]).sort().values


PROGRAMS = [chosen, chosen_rows, places, chosen_twice, a_mean_of_what_is_chosen, products_of_rows, added_back]


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_one_graph_has_the_gradients_of_plain_execution(fn, gradients, leaf, tier):
    seeds = iter([1, 1, 2, 2, 3, 3])  # plain, then compiled

    def make():
        seed = next(seeds)
        return leaf(6, 4, seed=seed), leaf(4, 4, seed=seed + 10)

    gradients(fn, make)


@pytest.mark.parametrize("fn", [masked, joined], ids=lambda fn: fn.__name__)
def test_of_tensors_of_one_shape(fn, gradients, leaf, tier):
    seeds = iter([1, 1, 2, 2, 3, 3])

    def make():
        seed = next(seeds)
        return leaf(6, 4, seed=seed), leaf(6, 4, seed=seed + 10)

    gradients(fn, make)


class Experts(nn.Module):
    def __init__(self, count=3):
        super().__init__()
        self.gate = nn.Linear(6, count)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 8), nn.SiLU(), nn.Linear(8, 6)) for _ in range(count))

    def forward(self, x):
        weight, chosen = self.gate(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows, place = torch.where(chosen == e)
            out.index_add_(0, rows, expert(x[rows]) * weight[rows, place, None])
        return out


def rows_of(seed, n=40):
    return torch.randn(n, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def trained(make_step):
    torch.manual_seed(5)
    net = Experts().double()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    step = make_step(net, optimizer)
    losses = [step(rows_of(k)).item() for k in range(5)]
    return losses, [p.detach() for p in net.parameters()], [p.grad for p in net.parameters()]


def step_of(net, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = (net(x) - x.roll(1, 0)).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("make_step", [lambda net, o: tenon.compile(step_of(net, o)), lambda net, o: step_of(tenon.compile(net), o)], ids=["step", "model"])
def test_experts_train_as_plainly(make_step):
    want, got = trained(step_of), trained(make_step)
    torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-11)
    assert (tenon.stats()["graph_breaks"], tenon.stats()["eager_fallbacks"]) == (0, 0)


def test_nothing_chosen_is_left_to_plain_execution():
    compiled = tenon.compile(chosen)
    for sign in (1, -1, 1, -1, -1, 1):
        x = (torch.rand(5, 4, dtype=torch.float64) * sign).requires_grad_()
        w = torch.rand(4, 4, dtype=torch.float64, requires_grad=True)
        want = torch.autograd.grad(chosen(x, w), (x, w))
        torch.testing.assert_close(torch.autograd.grad(compiled(x, w), (x, w)), want)


def test_gradients_of_gradients(leaf, tier):
    for fn in (chosen, places, a_mean_of_what_is_chosen):
        compiled = tenon.compile(fn)
        for seed in (1, 2):
            seen = []
            for run in (fn, compiled):
                x, w = leaf(6, 4, seed=seed), leaf(4, 4, seed=seed + 10)
                first = torch.autograd.grad(run(x, w).sum(), (x, w), create_graph=True)
                seen.append((first, torch.autograd.grad(sum((g * g).sum() for g in first), (x, w))))
            torch.testing.assert_close(seen[1], seen[0])
