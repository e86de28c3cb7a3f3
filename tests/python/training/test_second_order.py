"""Gradients of gradients as results of a segment see them: retained, by hooks, and whether they require grad."""
import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

pytestmark = pytest.mark.usefixtures("tier")


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


@pytest.mark.parametrize("function", [lambda x: (x.tanh(), x.tanh() * x.tanh()), lambda x: (lambda t: (t, t * t))(x.tanh()), lambda x: (lambda s: (s, 1 - s, s * (1 - s)))(x.sigmoid())])
def test_what_gradients_share_with_results_is_differentiated_on(function):
    """A square that is a result is read by the gradient of tanh, whose own needs tanh itself."""
    def derivatives(run):
        x = torch.linspace(-1, 1, 40, dtype=torch.float64).requires_grad_()
        value, found = sum((r * (k + 1)).sum() for k, r in enumerate(run(x))), []
        for _ in range(4):
            (gradient,) = torch.autograd.grad(value, x, create_graph=True)
            found.append(gradient.detach())
            value = gradient.sum()
        return found

    torch.testing.assert_close(derivatives(tenon.compile(function)), derivatives(function))
    assert tenon.stats()["graph_breaks"] == 0


STEPS = {
    "relu": torch.relu, "relu6": F.relu6, "hardtanh": F.hardtanh, "leaky_relu": F.leaky_relu, "threshold": lambda x: F.threshold(x, 0.1, 2.0), "hardshrink": F.hardshrink,
    "softshrink": F.softshrink, "max_pool1d": lambda x: F.max_pool1d(x[:, None], 2), "max_pool2d": lambda x: F.max_pool2d(x[None], 2), "avg_pool1d": lambda x: F.avg_pool1d(x[:, None], 2),
    "clamp": lambda x: x.clamp(-0.5, 0.5), "amax": lambda x: x.amax(1), "abs": torch.abs, "where": lambda x: torch.where(x > 0, x, -x), "sorted": lambda x: x.sort().values,
    "after dropout": lambda x: F.dropout(x.tanh(), 0.4).relu(), "after noise": lambda x: torch.relu(x + torch.randn_like(x)),
}


@pytest.mark.parametrize("level", ["function", "whole"])
@pytest.mark.parametrize("function", STEPS.values(), ids=STEPS)
def test_gradients_of_what_has_steps_depend_on_what_torchs_do(function, level):
    """Where its formula has no second derivative torch gives zeros of some functions, and nothing of others: an optimizer takes these apart."""
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        layer = torch.nn.Linear(4, 4, dtype=torch.float64)
        called = tenon.compile(function) if compiled and level == "function" else function

        def penalty(x, layer=layer, called=called):
            (gradient,) = torch.autograd.grad(called(layer(x)).cos().sum(), x, create_graph=True)
            return gradient.square().sum()

        def slopes(x, layer=layer, called=called):
            inner = layer(x)
            (gradient,) = torch.autograd.grad(called(inner).sum(), inner, create_graph=True)
            return gradient.requires_grad, torch.autograd.grad((gradient * inner.detach()).sum() + layer.weight.sum(), (inner, layer.bias, layer.weight), allow_unused=True)

        if compiled and level == "whole":
            penalty, slopes = tenon.compile(penalty), tenon.compile(slopes)
        x = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
        for _ in range(2):
            penalty(x).backward()
        found.append((slopes(x), slopes(x), layer.weight.grad, layer.bias.grad, x.grad))
    torch.testing.assert_close(found[1], found[0])


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()


def forces(net, x):
    x = x.clone().requires_grad_()
    energy = net(x).sum()
    return energy, -torch.autograd.grad(energy, x, create_graph=True)[0]


def residual(net, x):
    x, y = x.detach().requires_grad_(), x.detach().clone().requires_grad_()
    u = net(x * y)
    by_x, by_y = (torch.autograd.grad(u, v, torch.ones_like(u), create_graph=True)[0] for v in (x, y))
    return by_y + u * by_x - torch.autograd.grad(by_x, x, torch.ones_like(by_x), create_graph=True)[0]


def with_its_gradient(net, x):
    x = x.clone().requires_grad_()
    energy = net(x).sum()
    energy.backward(retain_graph=True)
    return energy, x.grad


def with_a_view(net, x):
    x = x.clone().requires_grad_()
    return net(x).sum(), x.view(-1)


@pytest.mark.parametrize("fn, whole", [(forces, True), (residual, True), (with_its_gradient, False), (with_a_view, False)])
def test_results_by_leaves_that_the_call_makes(fn, whole):
    """Nobody sees what flows to such a leaf, unless it has a `.grad`, or a view of it leaves."""

    def trained(run, net):
        seen = []
        for seed in range(3):
            net.zero_grad()
            results = run(net, torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)))
            results = results if isinstance(results, tuple) else (results,)
            sum((r**2).sum() for r in results if r.requires_grad).backward()
            seen += [r.detach().clone() for r in results] + [p.grad for p in net.parameters()]
        return seen

    torch.testing.assert_close(trained(tenon.compile(fn, fullgraph=whole), network()), trained(fn, network()))
