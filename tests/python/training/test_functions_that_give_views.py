"""torch.autograd.Function whose forward gives its input, or a view of something: a whole step with one is one graph; writes are torch's to refuse."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

D = torch.float64


class Viewed(torch.autograd.Function):
    """Gradient reversal, as it is mostly written."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.k * gradient, None


class AsItIs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clamp(-0.01, 0.01) * ctx.k, None


class Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        return x.t()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.t() * 2, None


class ViewOfItsOwn(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return (x * 3)[:, 1:]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.shape = inputs[0].shape

    @staticmethod
    def backward(ctx, gradient):
        whole = gradient.new_zeros(ctx.shape)
        whole[:, 1:] = gradient
        return whole * 5, None


def one(f, x):
    return f(x).sin()


def beside_its_input(f, x):
    y = f(x)
    return y.cos().sum() + (x * x).sum()


def a_view_of_it(f, x):
    return f(x)[1:].reshape(-1).sin()


def twice(f, x):
    y = f(x)
    return y.cos().sum() + f(y).square().sum()


def not_differentiated(f, x):
    return f(x).detach().sum() * x


def the_input_is_written_when_it_was_read(f, x):
    y = f(x).sum()
    x.mul_(2)
    return y + x.sum()


def it_is_written(f, x):
    y = f(x)
    y.mul_(2)
    return y


def its_input_is_written(f, x):
    y = f(x)
    x.mul_(2)
    return y.sin()


def it_is_written_without_grad(f, x):
    y = f(x)
    with torch.no_grad():
        y.mul_(2)
    return y.sin()


FUNCTIONS = [Viewed, AsItIs, Turned, ViewOfItsOwn]


def trained(function, body, level):
    torch.manual_seed(0)
    net = nn.Linear(4, 4, dtype=D)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def whole(x):
        return body(lambda h: function.apply(h, 0.5), net(x))

    model = tenon.compile(whole) if level == "model" else whole

    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    run = tenon.compile(step) if level == "step" else step
    return [run(torch.randn(4, 4, dtype=D)).detach() for _ in range(3)], [p.grad for p in net.parameters()], list(net.parameters())


@pytest.mark.parametrize("level", ["step", "model"])
@pytest.mark.parametrize("body", [one, beside_its_input, a_view_of_it, twice, not_differentiated])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values(function, body, level):
    torch.testing.assert_close(trained(function, body, level), trained(function, body, None))
    if level == "step":
        stats = tenon.stats()
        assert (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"]) == (2, 0, 0)


@pytest.mark.parametrize("level", ["step", "model"])
@pytest.mark.parametrize("body", [the_input_is_written_when_it_was_read, it_is_written, its_input_is_written, it_is_written_without_grad])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_writes(function, body, level):
    """What torch refuses is refused; what it allows is as with torch."""
    try:
        want = trained(function, body, None)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=str(error)[:40]):
            trained(function, body, level)
    else:
        torch.testing.assert_close(trained(function, body, level), want)


@pytest.mark.parametrize("level", ["step", "model"])
def test_what_it_gives_leaves(level):
    found = []
    for compiled in (False, True):
        x = torch.ones(3, 4, dtype=D, requires_grad=True)

        def step(x):
            h = x * 2
            y = AsItIs.apply(h, 0.5)
            return h, y, y.sum().backward() if level == "step" else None

        h, y, _ = (tenon.compile(step) if compiled else step)(x)
        found.append((h.data_ptr() == y.data_ptr(), y._is_view(), y.grad_fn.name(), x.grad))
    assert found[1] == found[0] if level == "model" else found[1][:3] == found[0][:3]
