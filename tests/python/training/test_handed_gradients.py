"""Gradients that torch's engine hands on without a copy: what `sum` spreads is expanded, and what an addition gives to both is one tensor."""
import pytest

import tenon

torch = pytest.importorskip("torch")


def leaf():
    return torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_()


SPREAD = {
    "sum": lambda x: x.sum(),
    "sums of rows": lambda x: x.sum(1).exp().sum(),
    "sums of columns": lambda x: x.sum(0).exp().sum(),
    "a sum of sums": lambda x: x.sum(0).sum(),
    "transposed": lambda x: x.T.sum(1).exp().sum(),
    "behind an addition": lambda x: (x + 1).sum(),
    "with the dimension": lambda x: x.sum(1, keepdim=True).exp().sum(),
    "mean": lambda x: x.mean(),
    "means of rows": lambda x: x.mean(1).exp().sum(),
    "of products": lambda x: (x * 2).sum(),
    "twice": lambda x: x.sum() + (x.sum() + 1).exp(),
    "a row": lambda x: x[0].sum(),
}


@pytest.mark.parametrize("name", SPREAD)
def test_gradients_lie_as_torch_gives_them(name):
    def asked(x):
        return torch.autograd.grad(SPREAD[name](x), [x])[0]

    compiled = tenon.compile(asked)
    for _ in range(3):
        want, got = asked(leaf()), compiled(leaf())
        torch.testing.assert_close(got, want)
        assert got.stride() == want.stride()
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("name", SPREAD)
def test_what_is_added_to_grad_has_memory_of_its_own(name):
    def stepped(x):
        SPREAD[name](x).backward()
        return x.grad

    compiled = tenon.compile(stepped)
    for _ in range(2):
        want, got = stepped(leaf()), compiled(leaf())
        torch.testing.assert_close(got, want)
        assert got.stride() == want.stride()
    assert tenon.stats()["graph_breaks"] == 0


def multiplied(g):
    g.mul_(3)


def written_in_part(g):
    g[0, 0] = 5


def added(g):
    g.add_(torch.arange(6.0).reshape(2, 3))


def given(g):
    return g.clamp_(max=0.5)


BEFORE = {
    "of its own": lambda y, x: (y * x).sum(),
    "of a mean": lambda y, x: y.mean(),
    "of two": lambda y, x: y.sum() + (y * y).sum(),
    "handed to another, too": lambda y, x: (y + x * 3).exp().sum(),
    "handed on": lambda y, x: ((y + 1).T * 2).sum(),
    "a part of it": lambda y, x: torch.cat([y, x]).exp().sum(),
}


@pytest.mark.parametrize("hook", [multiplied, written_in_part, added, given])
@pytest.mark.parametrize("name", BEFORE)
def test_a_hook_that_writes_into_its_gradient(name, hook):
    def asked(x):
        y = x * 2
        y.register_hook(hook)
        return torch.autograd.grad(BEFORE[name](y, x), [x])[0]

    def outcome(fn):
        try:
            return fn(leaf())
        except RuntimeError as error:
            return str(error)

    compiled = tenon.compile(asked)
    for _ in range(2):
        want, got = outcome(asked), outcome(compiled)
        assert type(got) is type(want), (got, want)
        if isinstance(want, str):
            assert got == want
        else:
            torch.testing.assert_close(got, want)


def test_gradients_of_both_operands_of_an_addition_are_one_tensor():
    def written(x):
        a, b = x * 2, x * 3
        of_a, of_b = torch.autograd.grad((a + b).exp().sum(), [a, b])
        of_a.mul_(5)
        return of_a, of_b

    x = torch.linspace(-1, 1, 4).requires_grad_()
    want, got = written(x), tenon.compile(written)(x)
    torch.testing.assert_close(got, want)


def test_a_gradient_that_nobody_else_has_is_written_in_the_graph():
    def step(w, x):
        gradient, = torch.autograd.grad((w + x).exp().sum(), [w])
        gradient.mul_(0.5)
        return gradient

    w, x = torch.linspace(-1, 1, 4).requires_grad_(), torch.ones(4)
    torch.testing.assert_close(tenon.compile(step)(w, x), step(w, x))
    assert (tenon.stats()["graphs"], tenon.stats()["graph_breaks"]) == (1, 0)
