"""Results of one segment that depend on each other: what a program sees of their history is a chain of nodes, as it is without Tenon."""
import gc
import weakref

import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

pytestmark = pytest.mark.usefixtures("tier")


# ---- programs: each gives results of which some depend on others

def two(x, w):
    h = x * w
    return h, h.tanh()


def three(x, w):
    h = (x @ w).tanh()
    k = (h @ w).tanh()
    return h, k, (k @ w + h).sum()


def joined(x, w):
    """What both results need keeps something."""
    t = (x * w).exp()
    h = t.sin()
    return h, h * t


def joined_cheaply(x, w):
    t = -(x + w)
    h = t.sin()
    return h, (h * t).cos()


def one_before_two(x, w):
    h = x @ w
    return h, h.sin(), h.exp()


def two_before_one(x, w):
    a, b = x.sin(), w.cos()
    return a, b, a @ b


def views_of_results(x, w):
    h = x @ w
    v = h[1:]
    u = v.t()
    return h, v, u, u.tanh().sum() + v.exp().sum()


def views_of_inputs(x, w):
    v = x[1:]
    u = v.t()
    return v, u, (u.tanh() * w[:, :3]).sum(), (v * 2).sum()


def views_alone(x, w):
    h = (x * w).sin()
    return h.t(), h.t().exp()


def the_same_elements(x, w):
    h = x * w
    v = h.view_as(h)
    c = v.clone()
    return h, v, c, c.sin()


def twice_the_same(x, w):
    h = x * w
    return h, h, h.tanh(), h


def passed_through(x, w):
    return x, x.tanh() * w, w, x.tanh()


def written(x, w):
    h = x * w
    b = h.tanh()
    h = h + 0
    h.mul_(w)
    return h, b, h.sin()


def written_through_a_view(x, w):
    h = x * w
    v = h[0]
    v.mul_(3)
    return h, h.sin(), v


def one_detached(x, w):
    h = x * w
    d = h.detach()
    return h, d, (d * h).sin()


def one_without_grad(x, w):
    h = x @ w
    with torch.no_grad():
        k = h.relu()
    return h, k, (k * h).sum(), h.argmax(1)


def reduced(x, w):
    h = x * w
    m, at = h.max(1)
    s = h.sum()
    return h, m, s, at, (h / s + m).sum()


def split(x, w):
    a, b = (x @ w).split([1, 3])
    c, d = (a + b).unbind(1)[:2]
    return a, b, (a * b).sum(), c, (c * d).sum()


def parts_of_one(x, w):
    """No result depends on another one, and all need what was kept once."""
    t = x @ w
    t = t.exp()
    return t.sin(), t.cos(), t.sum()


def broken(x, w):
    h = (x @ w).tanh()
    k = h * 2
    tenon.graph_break()
    return h, k, (h * k).sum()


def broken_twice(x, w):
    h = x @ w
    tenon.graph_break()
    k = h.sin()
    v = k[1:]
    tenon.graph_break()
    return h, k, v, (v.sum() * h + k).sum()


def many(x, w):
    """Hidden states of layers that all need one table, which nobody gets."""
    table = (w @ w).softmax(0)
    states = [x]
    for _ in range(4):
        states.append(torch.tanh(states[-1] @ w + table) + states[-1])
    return (*states[1:], F.layer_norm(states[-1], (4,)))


PROGRAMS = [two, three, joined, joined_cheaply, one_before_two, two_before_one, views_of_results, views_of_inputs, views_alone, the_same_elements, twice_the_same,
            passed_through, written, written_through_a_view, one_detached, one_without_grad, reduced, split, parts_of_one, broken, broken_twice, many]


# ---- situations: what a program does with the results

def weights(t):
    return (torch.arange(t.numel(), dtype=t.dtype).reshape(t.shape) + 1).cos()


def tracked(results):
    return [t for t in results if t.requires_grad]


def last_loss(results):
    t = tracked(results)[-1]
    return (t * weights(t)).sum()


def all_losses(results):
    return sum((t * weights(t)).sum() for t in tracked(results))


def gradients_of(tensors):
    return [None if t.grad is None else t.grad.clone() for t in tensors]


def hooks_see(f, x, w):
    results, seen = f(x, w), []
    for at, t in enumerate(tracked(results)):
        t.register_hook(lambda g, at=at: seen.append((at, g.clone())))
    last_loss(results).backward()
    return sorted(seen, key=lambda s: s[0]), gradients_of((x, w))


def hooks_change(f, x, w):
    results = f(x, w)
    for at, t in enumerate(tracked(results)):
        t.register_hook(lambda g, at=at: g * (at + 2))
    all_losses(results).backward()
    return gradients_of((x, w))


def gradients_are_retained(f, x, w):
    results = f(x, w)
    for t in tracked(results):
        t.retain_grad()
    last_loss(results).backward()
    return gradients_of(tracked(results)), gradients_of((x, w))


def hooks_of_nodes(f, x, w):
    results, seen = f(x, w), []
    for at, t in enumerate(tracked(results)):
        if t.grad_fn is not None:
            t.grad_fn.register_prehook(lambda g, at=at: seen.append(at))
    last_loss(results).backward()
    return sorted(seen), gradients_of((x, w))


def by_a_result(f, x, w):
    told = []
    count = len(tracked(f(x, w)))
    for at in range(count):
        results = tracked(f(x, w))
        told.append(torch.autograd.grad(last_loss(results), results[at], allow_unused=True, retain_graph=True))
        told.append(torch.autograd.grad(all_losses(results), results[at]))
    return told


def by_all_at_once(f, x, w):
    results = tracked(f(x, w))
    return torch.autograd.grad(last_loss(results), [*results, x, w], allow_unused=True)


def one_at_a_time(f, x, w):
    told = []
    for at in range(len(tracked(f(x, w)))):
        t = tracked(f(x, w))[at]
        (t * weights(t)).sum().backward()
        told.append(gradients_of((x, w)))
        x.grad = w.grad = None
    return told


def one_after_the_other(f, x, w):
    """Through the same nodes: torch says which of them it has let go."""
    results, told = tracked(f(x, w)), []
    for t in reversed(results):
        try:
            (t * weights(t)).sum().backward(retain_graph=True)
        except RuntimeError as error:
            told.append(str(error)[:40])
        told.append(gradients_of((x, w)))
    return told


def to_inputs_only(f, x, w):
    results = tracked(f(x, w))
    last_loss(results).backward(inputs=[results[0], x] if results[0] is not x else [x], retain_graph=True)
    told = gradients_of((x, w)) + ([] if results[0].is_leaf else [results[0].grad])
    all_losses(results).backward()
    return told, gradients_of((x, w))


def twice(f, x, w):
    results = tracked(f(x, w))
    last_loss(results).backward(retain_graph=True)
    all_losses(results).backward()
    return gradients_of((x, w))


def second_order(f, x, w):
    results = tracked(f(x, w))
    first = torch.autograd.grad(all_losses(results), [x, w], create_graph=True, allow_unused=True)
    sum((g * g * weights(g)).sum() for g in first if g is not None).backward()
    return first, gradients_of((x, w))


def second_order_by_results(f, x, w):
    results = tracked(f(x, w))
    results = [t for t in results if not t.is_leaf]
    first = torch.autograd.grad(all_losses(results), results, create_graph=True, allow_unused=True)
    total = sum((g * g * weights(g)).sum() for g in first if g is not None) + results[0].sum()
    total.backward()
    return first, gradients_of((x, w))


def one_is_written_then(f, x, w):
    results = [t for t in tracked(f(x, w)) if not t.is_leaf]
    try:
        results[0].mul_(2)
        all_losses(results).backward()
    except RuntimeError as error:
        assert "inplace operation" in str(error) or "in-place operation" in str(error), error
        return MayRefuse(None)
    return MayRefuse(gradients_of((x, w)))


def goes_on(f, x, w):
    """A second call on what the first one gave."""
    results = tracked(f(x, w))
    square = next((t for t in results if t.shape == x.shape), None)
    if square is None:
        return []
    later = tracked(f(square * 1, w))
    square.retain_grad()
    last_loss(later).backward()
    return gradients_of((x, w, square))


SITUATIONS = [hooks_see, hooks_change, gradients_are_retained, hooks_of_nodes, by_a_result, by_all_at_once, one_at_a_time, one_after_the_other, to_inputs_only, twice, second_order,
              second_order_by_results, one_is_written_then, goes_on]


class MayRefuse:
    """Gradients, or nothing where torch refuses them. A segment that has not kept what was written may give them."""

    def __init__(self, gradients):
        self.gradients = gradients


def same(got, want):
    if isinstance(want, MayRefuse):
        return same(got.gradients, want.gradients) if got.gradients and want.gradients else None
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want)
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    else:
        assert got == want


@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_a_chain(program, leaf):
    compiled = tenon.compile(program)
    for situation in SITUATIONS:
        want, got = (situation(f, leaf(4, 4), leaf(4, 4, seed=1)) for f in (program, compiled))
        try:
            same(got, want)
        except AssertionError as error:
            raise AssertionError(f"{situation.__name__}: {error}") from error


@pytest.mark.parametrize("view", [
    lambda h: h.view_as(h), lambda h: h[:], lambda h: h[...], lambda h: h.expand_as(h), lambda h: h.reshape(h.shape), lambda h: h.permute(0, 1), lambda h: h.squeeze(),
    lambda h: h.narrow(0, 0, 2), lambda h: h.chunk(1)[0], lambda h: h.unbind(1)[0], lambda h: h.split(1)[1], lambda h: h.transpose(0, 0), lambda h: h.t().t(),
    lambda h: torch.einsum("ij->ij", h), lambda h: h.clone(), lambda h: torch.cat([h]), lambda h: h.contiguous(), lambda h: F.dropout(h, 0.5, False)])
def test_what_has_the_elements_of_another_has_a_node_of_its_own(view, leaf):
    def f(x):
        h = x * 2
        v = view(h)
        return h, v, v.sin()

    told = []
    for g in (f, tenon.compile(f)):
        x, seen = leaf(2, 3), []
        h, v, b = g(x)
        h.register_hook(lambda t: seen.append(("h", t)))
        v.register_hook(lambda t: seen.append(("v", t)))
        b.sum().backward()
        told.append([h is v, seen, x.grad])
    same(told[1], told[0])


def test_a_hook_is_not_called_for_a_result_without_a_gradient(leaf):
    compiled = tenon.compile(parts_of_one)
    (a, b, _), seen = compiled(leaf(4, 4), leaf(4, 4, seed=1)), []
    a.register_hook(seen.append)
    b.sum().backward()
    assert not seen


def test_states_of_an_lstm(leaf):
    torch.manual_seed(0)
    net = torch.nn.LSTM(3, 4, 2).double()
    told = []
    for f in (net, tenon.compile(net)):
        for which in range(3):
            net.zero_grad()
            out, (h, c) = f(leaf(5, 3))
            for t in (out, h, c):
                t.retain_grad()
            (out, h, c)[which].sin().sum().backward()
            told.append([[p.grad for p in net.parameters()], [t.grad for t in (out, h, c)]])
    for at in range(3):
        same(told[3 + at], told[at])


def test_hidden_states_of_a_transformer(leaf):
    """Layers with attention, whose states all are results and of which the program retains gradients; a table is shared by all layers."""
    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True) for _ in range(3))
            self.bias = torch.nn.Embedding(4, 2)

        def forward(self, x):
            at = (torch.arange(5)[:, None] - torch.arange(5)).clamp(0, 3)
            bias = self.bias(at).permute(2, 0, 1).repeat(x.shape[0], 1, 1)
            states = [x]
            for layer in self.layers:
                states.append(layer(states[-1], src_mask=bias))
            return states[-1].mean(1), states[1:], bias

    net = Net().double()
    told = []
    for f in (net, tenon.compile(net)):
        net.zero_grad()
        x = leaf(2, 5, 8)
        y, states, bias = f(x)
        for t in (*states, bias):
            t.retain_grad()
        (y.sin().sum() + states[0].square().sum()).backward()
        told.append([[p.grad.clone() for p in net.parameters()], [t.grad for t in states], bias.grad, x.grad])
    same(told[1], told[0])
    assert tenon.stats()["graphs"] == 1


def test_sizes_that_vary(leaf):
    compiled = tenon.compile(joined, dynamic=True)
    for n in (3, 4, 6, 9):
        told = []
        for f in (joined, compiled):
            x, w = leaf(n, n), leaf(n, n, seed=1)
            h, b = f(x, w)
            h.retain_grad()
            b.sum().backward()
            told.append([h.grad, x.grad, w.grad])
        same(told[1], told[0])


def test_a_chain_keeps_nothing_alive_that_was_let_go(leaf):
    """The first node of a chain ends with the last tensor that leads to it."""
    compiled = tenon.compile(three)
    x, w = leaf(4, 4), leaf(4, 4, seed=1)
    for _ in range(3):
        h, k, loss = compiled(x, w)
        told = [weakref.ref(t) for t in (h, k, loss)]
        loss.backward()
        del h, k, loss
        gc.collect()
        assert [t() for t in told] == [None] * 3
