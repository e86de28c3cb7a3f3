"""Functions with gradients of their own, as programs write them."""
import pytest

torch = pytest.importorskip("torch")

Function = torch.autograd.Function


class Reversed(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.alpha * gradient, None


class Exponential(Function):
    """Twice its gradient, from its result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * y * 2


class Swish(Function):
    """Its gradient is made of values that its forward has, too."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        s = torch.sigmoid(ctx.saved_tensors[0])
        return gradient * (s * (1 + ctx.saved_tensors[0] * (1 - s)))


class Several(Function):
    """Results of which one has no gradient; inputs of which each has one."""

    @staticmethod
    def forward(ctx, x, w, factor):
        places = x.argmax(1)
        ctx.save_for_backward(x, w)
        ctx.mark_non_differentiable(places)
        ctx.factor = factor
        return x * w, (x + w).sum(), places

    @staticmethod
    def backward(ctx, of_product, of_sum, of_places):
        x, w = ctx.saved_tensors
        return of_product * w * ctx.factor + of_sum, (of_product * x).sum(0) + of_sum, None


class Spike(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        return gradient / (1 + (2.0 * ctx.x).abs()) ** 2
