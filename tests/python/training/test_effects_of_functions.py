"""What functions of the program's with gradients of their own save, do and raise, where their results leave a compiled function: as with torch."""
import pytest

import tenon

torch = pytest.importorskip("torch")

from tests.python.training.functions import Exponential, Reversed, Swish  # noqa: E402

D = torch.float64
Function = torch.autograd.Function


class Cube(Function):
    @staticmethod
    def forward(x, power):
        return x**power

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.power = inputs[1]

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * ctx.power * x ** (ctx.power - 1), None


def inputs_of(shapes):
    return [torch.randn(shape, dtype=D, generator=torch.Generator().manual_seed(at)).requires_grad_() for at, shape in enumerate(shapes)]


log = []


class Logging(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        log.append(1)
        return gradient * 2


class Drawing(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * torch.rand_like(gradient)


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient.mul_(3)


class Failing(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("not today")


@pytest.mark.parametrize("function", [Logging, Drawing, InPlace])
def test_what_does_more_than_compute_is_torchs(function):
    """Its backward runs at each walk."""
    def run(wrap):
        log.clear()
        model, found = wrap(lambda x: function.apply(x * 3).sin()), []
        for seed in range(3):
            torch.manual_seed(seed)
            (x,) = inputs_of([(3, 4)])
            model(x).sum().backward()
            found.append(x.grad)
        return found, list(log)

    torch.testing.assert_close(run(tenon.compile), run(lambda f: f))
    assert tenon.stats()["graph_breaks"] == 1


def test_what_a_backward_raises_is_raised_where_gradients_are_computed():
    (x,) = inputs_of([(3, 4)])
    y = tenon.compile(lambda x: Failing.apply(x * 3).sin())(x)
    with pytest.raises(ValueError, match="not today"):
        y.sum().backward()


def test_what_it_saved_may_not_be_written():
    for wrap in (lambda f: f, tenon.compile):
        x, y = inputs_of([(3, 4), (3, 4)])
        h = (x * 1).detach().requires_grad_()
        z = wrap(lambda h, y: Cube.apply(h, 2) * y)(h, y)
        with torch.no_grad():
            h.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


def test_what_it_saved_is_written_in_the_same_call():
    def function(x):
        h = x * 1
        y = Cube.apply(h, 3)
        h.mul_(2)
        return y + h

    for wrap in (lambda f: f, tenon.compile):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            wrap(function)(*inputs_of([(3, 4)])).sum().backward()


def test_it_is_asked_for_its_gradients_once():
    for wrap in (lambda f: f, tenon.compile):
        y = wrap(lambda x: Exponential.apply(x))(*inputs_of([(3, 4)]))
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            y.sum().backward()


def test_a_tensor_that_it_did_not_save_is_read_when_gradients_are_computed():
    held = torch.ones(4, dtype=D)

    class Held(Function):
        @staticmethod
        def forward(ctx, x):
            return x * held

        @staticmethod
        def backward(ctx, gradient):
            return gradient * held

    def run(wrap):
        held.fill_(1)
        (x,) = inputs_of([(3, 4)])
        y = wrap(lambda x: Held.apply(x * 2))(x)
        held.fill_(5)
        y.sum().backward()
        return x.grad

    torch.testing.assert_close(run(tenon.compile), run(lambda f: f))


def test_a_network_is_trained():
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = torch.nn.Linear(6, 8, dtype=D), torch.nn.Linear(8, 3, dtype=D)

        def forward(self, x, alpha):
            return self.outer(Reversed.apply(Exponential.apply(self.inner(x) * 0.1), alpha))

    def run(wrap):
        torch.manual_seed(0)
        net = Network()
        optimizer = torch.optim.Adam(net.parameters())
        model = wrap(net)
        for step in range(4):
            optimizer.zero_grad()
            model(torch.randn(5, 6, dtype=D), 2 / (1 + step)).pow(2).mean().backward()
            optimizer.step()
        return [p.detach() for p in net.parameters()]

    torch.testing.assert_close(run(lambda net: tenon.compile(net, fullgraph=True)), run(lambda net: net))
