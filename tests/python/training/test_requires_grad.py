"""Programs that change whether tensors that are older than the call require grad: frozen networks, inputs that are differentiated by."""
import copy

import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional


def before_and_after(x, w):
    was = x.requires_grad
    a = x * 2
    x.requires_grad_(not was)
    b = x * 3
    x.requires_grad = was
    c = x * 5
    (a * b * c * w).sum().backward()
    return a.requires_grad, b.requires_grad, c.requires_grad, x.requires_grad


def off_when_gradients_come(x, w):
    y = (x * w).sum()
    x.requires_grad_(False)
    y.backward()
    x.requires_grad_(True)
    return x.grad is None


def by_the_input(x, w):
    x.requires_grad_()
    y = (x * w).sin()
    slope = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
    (slope * slope).sum().backward()
    return slope.detach(), x.requires_grad, x.is_leaf


def written_after(x, w):
    x.requires_grad_()
    with torch.no_grad():
        x.mul_(2)
    (x * w).sum().backward()


def with_a_hook(x, w):
    x.requires_grad_()
    x.register_hook(lambda g: g * 2)
    (x * w).sum().backward()
    return x.grad


def broken_in_between(x, w):
    x.requires_grad_()
    y = (x * w).sum()
    print(end="")
    y.backward()
    return x.requires_grad


def that_leaves_the_graph(x, w):
    return (x.requires_grad_() * w).cos()


def given_back(x, w):
    return x.requires_grad_(), x.requires_grad, w * 2


def a_view_from_before(x, w):
    v = x.view(2, 2)
    x.requires_grad_()
    ((v + x.view(2, 2)) * w.view(2, 2)).sum().backward()
    return v.requires_grad


@pytest.mark.parametrize("fn, grad, graphs", [
    (before_and_after, False, 1), (before_and_after, True, 1), (off_when_gradients_come, True, 1), (by_the_input, False, 1), (written_after, False, 1),
    (with_a_hook, False, None), (broken_in_between, False, None), (a_view_from_before, False, None), (that_leaves_the_graph, False, None), (given_back, False, None),
], ids=lambda value: getattr(value, "__name__", str(value)))
def test_of_inputs(gradients, leaf, fn, grad, graphs):
    gradients(fn, lambda: [leaf(4, seed=1, grad=grad), leaf(4, seed=2)], graphs)


@pytest.mark.parametrize("ask, words", [
    (lambda x: (x * 2).requires_grad_(False), "leaf variables"), (lambda x: x.long().requires_grad_(), "floating point"),
], ids=["computed", "integers"])
def test_what_torch_refuses(leaf, ask, words):
    compiled = tenon.compile(ask)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=words):
            compiled(leaf(4))


def test_an_input_that_was_computed_is_refused(leaf):
    compiled = tenon.compile(lambda y: y.requires_grad_(False) * 2)
    assert not compiled(leaf(4)).requires_grad
    for _ in range(2):
        with pytest.raises(RuntimeError, match="leaf variables"):
            compiled(leaf(4) * 2)


def set_requires_grad(net, wanted):
    for p in net.parameters():
        p.requires_grad = wanted


def adversaries_step(maker, judge, optimizers, noise, real):
    of_maker, of_judge = optimizers
    made = maker(noise)
    set_requires_grad(judge, False)
    of_maker.zero_grad()
    loss = F.softplus(-judge(made)).mean()
    loss.backward()
    of_maker.step()
    set_requires_grad(judge, True)
    of_judge.zero_grad()
    other = (F.softplus(judge(made.detach())) + F.softplus(-judge(real))).mean()
    other.backward()
    of_judge.step()
    return loss.detach(), other.detach()


def test_two_networks_against_each_other(check):
    torch.manual_seed(0)
    nets = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double(), torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1)).double()]
    twins = copy.deepcopy(nets)
    compiled, seen = tenon.compile(adversaries_step), []
    optimizers = [[torch.optim.Adam(maker.parameters(), 1e-2), torch.optim.SGD(judge.parameters(), 1e-2)] for maker, judge in (nets, twins)]
    for call in range(4):
        noise, real = torch.randn(6, 3, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)
        seen.append(tenon.stats()["graphs"])
        check.same(compiled(*twins, optimizers[1], noise, real), adversaries_step(*nets, optimizers[0], noise, real))
        for p, t in zip([p for n in nets for p in n.parameters()], [p for n in twins for p in n.parameters()]):
            check.same(t.detach(), p.detach())
            assert t.requires_grad and torch.allclose(t.grad, p.grad)
    assert tenon.stats()["graph_breaks"] == 0 and tenon.stats()["graphs"] == seen[-1]


def test_a_network_that_is_left_frozen():
    def step(net, x):
        set_requires_grad(net[0], False)
        net.zero_grad()
        net(x).square().mean().backward()

    torch.manual_seed(0)
    net, x = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)), torch.randn(5, 3)
    compiled = tenon.compile(step)
    for _ in range(3):
        compiled(net, x)
        assert [p.requires_grad for p in net.parameters()] == [False, False, True, True]
        assert [p.grad is None for p in net.parameters()] == [True, True, False, False]
    assert tenon.stats()["graph_breaks"] == 0


def attack(net, x, target):
    x.requires_grad = True
    loss = F.cross_entropy(net(x), target)
    net.zero_grad()
    loss.backward()
    return (x + 0.1 * x.grad.data.sign()).clamp(0, 1).detach()


def test_an_attack_on_a_network(check):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).double()
    compiled = tenon.compile(attack)
    for _ in range(3):
        x, target = torch.rand(5, 4, dtype=torch.float64), torch.randint(0, 3, (5,))
        y = x.clone()
        check.same(compiled(net, x, target), attack(net, y, target))
        assert x.requires_grad and torch.allclose(x.grad, y.grad)
    assert tenon.stats()["graph_breaks"] == 0
