"""torch.func's transforms by gradients, which are one graph with what they differentiate."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.func import functional_call, grad, grad_and_value, jacrev, vjp  # noqa: E402

D = torch.float64


def vector(seed=0, grad=False):
    return torch.randn(4, dtype=D, generator=torch.Generator().manual_seed(seed)).requires_grad_(grad)


WEIGHTS = torch.randn(3, 4, dtype=D, generator=torch.Generator().manual_seed(1))
OTHER = vector(2, True)


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)).double()


def written_twice(x):
    def fn(y):
        z = y * 1
        return z.mul_(2).sum() * y.sum()

    return grad(fn)(x)


def partly_without_grad_mode(x):
    def fn(y):
        with torch.no_grad():
            c = y**2
        return (y * y - c * y).sum()

    return grad(fn)(x)


def without_grad_mode(x):
    with torch.no_grad():
        return grad(lambda y: (y**3).sum())(x), jacrev(lambda y: y * y * OTHER)(x)


def one_step_after_another(x):
    for _ in range(3):
        x = x - 0.1 * grad(lambda w: ((w * w - 1) ** 2).mean())(x)
    return x


def pulled_back_twice(x):
    out, pull = vjp(lambda y: y * y * OTHER, x)
    doubled = out * 2
    return doubled, pull(out), pull(doubled)


def pulled_back_after_a_write(x):
    out, pull = vjp(lambda y: y * y * OTHER.detach(), x)
    out.add_(1)
    return out, pull(torch.ones_like(x))


def by_what_is_around(x):
    out, pull = vjp(lambda y: y * y * OTHER, x)
    return torch.autograd.grad((pull(torch.ones_like(x))[0] ** 2).sum() + out.sum(), OTHER)


PROGRAMS = {
    "grad": lambda x: grad(lambda y: y.sin().sum())(x),
    "grad of grad": lambda x: grad(lambda v: grad(lambda y: y.sin().sum())(v).square().sum())(x),
    "by two arguments": lambda x: grad(lambda a, b: (a * b * b).sum(), argnums=(0, 1))(x, x + 1),
    "by the last argument": lambda x: grad(lambda a, b: (a * b * b).sum(), argnums=-1)(x, x + 1),
    "by another one than the outer": lambda x: grad(lambda a: grad(lambda b: (a * b * b).sum())(OTHER.detach()).square().sum())(x),
    "value": lambda x: grad_and_value(lambda a: ((a * 2) ** 2).sum())(x),
    "others": lambda x: grad(lambda a: ((a * a).sum(), a + 1), has_aux=True)(x),
    "a dict": lambda x: grad(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": x * 2}),
    "a constant": lambda x: grad(lambda y: torch.tensor(1.0))(x),
    "keywords": lambda x: grad(lambda y, s=2.0: (y * y * s).sum())(x, s=3.0),
    "beside what requires grad": lambda x: grad(lambda y: (y * y * OTHER).sum())(x),
    "vjp": lambda x: vjp(lambda y: y.tanh(), x)[1](x),
    "vjp and others": lambda x: vjp(lambda y: (y.tanh(), y.sum()), x, has_aux=True)[2],
    "vjp of vjp": lambda x: vjp(lambda y: vjp(lambda z: z**3, y)[1](torch.ones_like(y))[0], x)[1](x),
    "jacrev": lambda x: jacrev(lambda y: (WEIGHTS * y).sum(-1).exp())(x),
    "jacrev of two": lambda x: jacrev(lambda y: (y.square().sum(), y * y))(x),
    "jacrev by two": lambda x: jacrev(lambda a, b: a * b, argnums=(0, 1))(x, x + 1),
    "jacrev of jacrev": lambda x: jacrev(jacrev(lambda y: (y**3).sum()))(x),
    "jacrev of nothing": lambda x: jacrev(lambda y: y[:0] * 2)(x),
    "torch.autograd.functional": lambda x: torch.autograd.functional.jacobian(lambda y: y.exp() * WEIGHTS, x),
}
FUNCTIONS = (written_twice, partly_without_grad_mode, without_grad_mode, one_step_after_another, pulled_back_twice, by_what_is_around)


@pytest.mark.parametrize("fn", [*PROGRAMS.values(), *FUNCTIONS], ids=[*PROGRAMS, *(f.__name__ for f in FUNCTIONS)])
@pytest.mark.parametrize("wanted", [False, True])
def test_one_graph(check, fn, wanted):
    compiled = tenon.compile(fn, fullgraph=True)
    for seed in range(3):
        want = fn(vector(seed, wanted))
        check.same(compiled(vector(seed, wanted)), want)
    assert tenon.stats()["graphs"] == 1


def test_a_model_by_its_parameters(check, net):
    def loss(parameters, x):
        return functional_call(net, parameters, (x,)).square().sum()

    def adapted(x):
        parameters = dict(net.named_parameters())
        slopes = grad(loss)(parameters, x)
        return torch.autograd.grad(loss({k: p - 0.1 * slopes[k] for k, p in parameters.items()}, x), list(parameters.values()))

    compiled = tenon.compile(adapted, fullgraph=True)
    for seed in range(3):
        check.same(compiled(vector(seed)), adapted(vector(seed)))


def gives_its_argument(x):
    return grad(lambda y: y)(x.sum())


class Fives(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 5


def broken_off(x):
    out, pull = vjp(lambda y: y * y, x)
    tenon.graph_break()
    return out, pull(out)


def kept_for_later(x):
    return vjp(lambda y: y * y * OTHER, x)


@pytest.mark.parametrize("wanted", [False, True])
def test_what_pulls_back_leaves_the_graph(check, wanted):
    compiled = tenon.compile(kept_for_later)
    for seed in range(2):
        (got, pull), (want, plain) = compiled(vector(seed, wanted)), kept_for_later(vector(seed, wanted))
        check.same((got, pull(got)), (want, plain(want)))
    check(broken_off, (vector(0, wanted),))


@pytest.mark.parametrize("fn", [
    gives_its_argument, pulled_back_after_a_write, lambda x: grad(lambda y: Fives.apply(y).sum())(x), lambda x: jacrev(lambda y: torch.outer(y, y).repeat(3, 3))(x),
    lambda x: torch.func.hessian(lambda y: (y**3).sum())(x), lambda x: torch.vmap(grad(lambda y: y.sin()))(x), lambda x: vjp(lambda y: y.view(2, 2), x)[0],
])
def test_what_only_torch_follows(check, fn):
    compiled = tenon.compile(fn)
    for seed in range(2):
        check.same(compiled(vector(seed)), fn(vector(seed)))


@pytest.mark.parametrize("fn, text", [
    (lambda x: grad(lambda y: y.sum(), argnums=3)(x), "argnum"), (lambda x: grad(lambda y: y * 2)(x), "scalar"), (lambda x: grad(lambda y: y.mul_(2).sum())(x), "in-place"),
    (lambda x: vjp(lambda y: y * 2, x)[1]({"k": x}), "pytree"), (lambda x: grad(lambda n: x.sum() * n)(2), "requires_grad_|Tensor"),
])
def test_what_torch_refuses(fn, text):
    for run in (fn, tenon.compile(fn)):
        with pytest.raises((RuntimeError, ValueError, TypeError), match=text):
            run(vector(0, True))
