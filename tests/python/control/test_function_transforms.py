"""torch.autograd.Function, which is followed where no gradient is wanted, and torch's transforms of functions that run as they are."""

import weakref

import pytest

import tenon

torch = pytest.importorskip("torch")
from torch._higher_order_ops.associative_scan import associative_scan  # noqa: E402


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, power=2):
        ctx.save_for_backward(x)
        ctx.power = power
        assert not torch.is_grad_enabled()
        return x**power, x + int(ctx.needs_input_grad[0])

    @staticmethod
    def backward(ctx, grad, _):
        (x,) = ctx.saved_tensors
        return ctx.power * x * grad, None


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class Written(Same):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)


class InTwoSteps(torch.autograd.Function):
    @staticmethod
    def forward(x, by):
        return x * by

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.by = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.by, None


class Branching(Same):
    @staticmethod
    def forward(ctx, x):
        return x + 1 if x.sum() > 0 else x - 1


class Saved(Same):
    @staticmethod
    def forward(x):
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)


class SavedForForward(Saved):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)


def into_two(x):
    y = InTwoSteps.apply(x, 3.0)
    return Square.apply(y + 1, 3), y


def given_back(x):
    y = Same.apply(x)
    x.mul_(2)
    return y, y is x


def written(x):
    y = Written.apply(x)
    return y * 2, y is x


@pytest.mark.parametrize("fn", [into_two, given_back, written, lambda x: Square.apply(x)[0]])
@pytest.mark.parametrize("grad", [False, True])
def test_a_function_is_followed(check, fn, grad):
    with torch.set_grad_enabled(grad):
        check(fn, (torch.randn(3),))
    assert tenon.stats()["graph_breaks"] == 0


def test_a_function_with_a_branch_runs_as_it_is(check):
    check(lambda x: Branching.apply(x * 2) * 3, (torch.ones(3),), (-torch.ones(3),))


@pytest.mark.parametrize("function", [Saved, SavedForForward])
def test_an_input_that_is_saved_and_given_back_is_refused(function):
    compiled = tenon.compile(lambda x: function.apply(x))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="returned as-is"):
            compiled(torch.ones(3))


def test_a_function_keeps_its_gradient():
    x = torch.randn(3, requires_grad=True)
    compiled = tenon.compile(lambda x: Square.apply(x)[0].sum())
    for _ in range(2):
        x.grad = None
        compiled(x).backward()
        torch.testing.assert_close(x.grad, 2 * x.detach())
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), (x**2).sum())
        assert not compiled(x).requires_grad


@pytest.mark.parametrize("fn, breaks", [
    (lambda x: torch.vmap(lambda r: r.softmax(0) * 2)(x) + 1, 1),
    (lambda x: torch.func.jvp(torch.sin, (x,), (x,)), 1),
    (lambda x: torch.func.jacfwd(torch.sin)(x[0]), 1),
    (lambda x: torch.func.hessian(lambda y: (y**3).sum())(x[0]), 1),
    (lambda x: associative_scan(torch.add, x * 2, dim=0, combine_mode="generic") + 1, 1),
    (lambda x: torch.vmap(torch.func.grad(lambda y: y.sin().sum()))(x), 1),
])
def test_transforms_are_one_break_each(fn, breaks):
    x, compiled = torch.randn(3, 3), tenon.compile(fn)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), fn(x))
    graphs = tenon.stats()["graphs"]
    compiled(x + 1)
    assert tenon.stats()["graphs"] == graphs
    assert breaks is None or tenon.stats()["graph_breaks"] == breaks


def test_a_transformed_function_has_the_name_of_its_function():
    def fn(x):
        def total(x):
            return x.sum()

        return [transform(total).__name__ for transform in (torch.func.grad, torch.func.grad_and_value, torch.vmap)]

    assert tenon.compile(fn)(torch.ones(3)) == fn(torch.ones(3))


def test_a_class_made_in_the_program(check):
    def fn(x, mask):
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(mask)
                return torch.where(mask, x, 0) * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        return Scale.apply(x) + torch.masked.sum(x, 0, mask=mask)

    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    with torch.no_grad():
        check(fn, (x, x > 0), (x + 1, x > -1))
    assert tenon.stats()["graph_breaks"] == 0


def test_functions_to_which_weak_references_look():
    watched = weakref.ref(torch.sin)  # torch.compile looks at what it has seen
    x, compiled = torch.randn(3, 3), tenon.compile(lambda x: torch.func.jvp(torch.sin, (x,), (x,)))
    torch.testing.assert_close(compiled(x), torch.func.jvp(torch.sin, (x,), (x,)))
    assert watched() is torch.sin and tenon.stats()["graph_breaks"] == 1
