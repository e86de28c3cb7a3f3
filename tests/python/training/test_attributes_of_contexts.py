"""What functions of the program's keep as attributes of their context is theirs: torch lets go of saved tensors alone."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from tests.python.training.functions import Exponential, Spike  # noqa: E402

D = torch.float64
Function = torch.autograd.Function


class KeepsItsResult(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = x.exp()
        return ctx.y * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.y


class KeepsBoth(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.y = x.exp()
        return ctx.y * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.y + 0 * ctx.saved_tensors[0]


@pytest.mark.parametrize(
    "call",
    [lambda x: Spike.apply(x).sum(), lambda x: (Spike.apply(x) + KeepsItsResult.apply(-x)).reshape(-1), lambda x: Spike.apply(Spike.apply(x)), lambda x: Spike.apply(x) * x,
     lambda x: KeepsBoth.apply(x).sum(), lambda x: Exponential.apply(x), lambda x: Spike.apply(x.exp())],
    ids=["an input", "a value", "a chain", "beside a product", "beside what is saved", "saved", "of a saved result"],
)
def test_attributes_of_a_context_are_not_let_go(call, tier):
    def gradients(run):
        x = torch.linspace(-1, 1, 5, dtype=D).requires_grad_()
        y = run(x)
        found = []
        for _ in range(3):
            try:
                y.sum().backward()
            except RuntimeError as error:
                assert "second time" in str(error)
                break
            found.append(x.grad.clone())
        return found

    torch.testing.assert_close(gradients(tenon.compile(call)), gradients(call))
    assert tenon.stats()["graph_breaks"] == 0


class KeepsWhatItGives(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = [x.exp()]
        return ctx.y[0]

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.y[0]


def gradient_after_a_write(run, written):
    x = torch.linspace(-1, 1, 5, dtype=D).requires_grad_()
    y = run(x)
    with torch.no_grad():
        (x if written == "input" else y).add_(1)
    return torch.autograd.grad(y, x, torch.ones_like(y))[0]


def test_an_input_that_is_an_attribute_of_a_context_and_was_written_is_read_as_it_is(tier):
    """Once that is refused, from then on by torch."""
    class KeepsItsInput(Spike):
        pass

    def call(x):
        return KeepsItsInput.apply(x)

    compiled, want = tenon.compile(call), gradient_after_a_write(call, "input")
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*attribute of the ctx of .*KeepsItsInput, .* from here on torch runs this backward"):
        gradient_after_a_write(compiled, "input")
    for _ in range(2):
        torch.testing.assert_close(gradient_after_a_write(compiled, "input"), want)
    assert tenon.stats()["graph_breaks"] == 1


def beside_its_input(x):
    h = x * 1
    return Spike.apply(h), h


def beside_a_view(x):
    h = x * 1
    return Spike.apply(h), h[:]


@pytest.mark.parametrize("call", [KeepsWhatItGives.apply, lambda x: KeepsWhatItGives.apply(x * 2), beside_its_input, beside_a_view])
def test_what_is_an_attribute_of_a_context_and_leaves_the_graph_is_read_as_it_is(call, tier):
    def gradient(run):
        x = torch.linspace(-1, 1, 5, dtype=D).requires_grad_()
        results = run(x)
        y, written = results if isinstance(results, tuple) else (results, results)
        with torch.no_grad():
            written.add_(1)
        return torch.autograd.grad(y.sum(), x)[0]

    compiled = tenon.compile(lambda x: call(x))
    for _ in range(2):
        torch.testing.assert_close(gradient(compiled), gradient(call))
    assert tenon.stats()["graph_breaks"] == 1


def test_what_is_saved_and_was_written_is_refused_in_torchs_words(tier):
    class Product(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0] * 2

    for run in (Product.apply, tenon.compile(lambda x: Product.apply(x))):
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
            gradient_after_a_write(run, "input")
        assert "ctx" not in str(error.value)


@pytest.mark.parametrize("function", [Spike, KeepsItsResult])
def test_an_attribute_of_a_context_that_the_call_writes(function):
    def call(x):
        h = x * 2
        y = function.apply(h)
        with torch.no_grad():
            h.mul_(3)
        return y

    def gradient(run):
        x = torch.linspace(-1, 1, 5, dtype=D).requires_grad_()
        return torch.autograd.grad(run(x).sum(), x)[0]

    torch.testing.assert_close(gradient(tenon.compile(call)), gradient(call))
