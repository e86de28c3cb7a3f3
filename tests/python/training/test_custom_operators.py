"""Operators of ``torch.library.custom_op`` with a registered derivative: a part of a whole step, called once; torch's own in a compiled function."""
import pytest

import tenon

torch = pytest.importorskip("torch")

Tensor = torch.Tensor
calls = {"drawn": 0}


@torch.library.custom_op("tenon_test::cube", mutates_args=())
def cube(x: Tensor) -> Tensor:
    return x**3


cube.register_fake(torch.empty_like)
cube.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))


@torch.library.custom_op("tenon_test::scaled", mutates_args=())
def scaled(x: Tensor, y: Tensor, by: float = 2.0, *, plus: float = 0.5) -> Tensor:
    return x * y * by + plus


def _save_scaled(ctx, inputs, keyword_only_inputs, output):
    x, y, ctx.by = inputs
    ctx.plus = keyword_only_inputs["plus"]
    ctx.save_for_backward(x, y)


def _back_scaled(ctx, g):
    x, y = ctx.saved_tensors
    return g * y * ctx.by if ctx.needs_input_grad[0] else None, (g * x * ctx.by * len(ctx.needs_input_grad)).sum(0), None


scaled.register_fake(lambda x, y, by=2.0, *, plus=0.5: torch.empty_like(x))
scaled.register_autograd(_back_scaled, setup_context=_save_scaled)


@torch.library.custom_op("tenon_test::two", mutates_args=())
def two(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sin(), x.argsort(-1)


@torch.library.register_fake("tenon_test::two")
def _(x):
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.int64)


torch.library.register_autograd("tenon_test::two", lambda ctx, g, _: g * ctx.x.cos(), setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0]))


@torch.library.custom_op("tenon_test::drawn", mutates_args=())
def drawn(x: Tensor) -> tuple[Tensor, Tensor]:
    calls["drawn"] += 1
    mask = torch.rand_like(x)
    return x * mask, mask


def _save_mask(ctx, inputs, output):
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])


drawn.register_fake(lambda x: (torch.empty_like(x), torch.empty_like(x)))
drawn.register_autograd(lambda ctx, g, _: g * ctx.saved_tensors[0], setup_context=_save_mask)


PROGRAMS = {
    "the definition": lambda x, w: cube(x * w),
    "the packet": lambda x, w: torch.ops.tenon_test.cube(x * w),
    "the overload": lambda x, w: torch.ops.tenon_test.cube.default(x * w),
    "one after another": lambda x, w: cube(cube(x * w).sin()),
    "defaults": lambda x, w: scaled(x, w),
    "by name": lambda x, w: scaled(y=w, x=x, plus=1.0),
    "all given": lambda x, w: scaled(x * w, w, 3.0, plus=2.0),
    "the default given": lambda x, w: scaled(x * w, w, by=2.0, plus=0.5),
    "several results, one with a gradient": lambda x, w: (lambda s, at: s.gather(-1, at))(*two(x * w)),
    "random numbers": lambda x, w: drawn(x * w)[0],
}


def trained(call, level):
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(5, dtype=torch.float64))
    optimizer = torch.optim.SGD([weight], 1e-2)
    function = tenon.compile(call) if level == "function" else call

    def step(x):
        optimizer.zero_grad()
        loss = function(x, weight).tanh().sum()
        loss.backward()
        optimizer.step()
        return loss

    run = tenon.compile(step) if level == "step" else step
    return [run(torch.randn(3, 5, dtype=torch.float64)).detach() for _ in range(3)], weight, weight.grad


@pytest.mark.parametrize("level", ["function", "step"])
@pytest.mark.parametrize("call", PROGRAMS.values(), ids=PROGRAMS)
def test_gradients(call, level):
    torch.testing.assert_close(trained(call, level), trained(call, None))
    assert level == "function" or tenon.stats()["graph_breaks"] == 0


def test_it_is_called_once_in_a_step():
    calls["drawn"] = 0
    trained(PROGRAMS["random numbers"], "step")
    assert calls["drawn"] == 3


def test_second_derivatives():
    def second(x):
        (first,) = torch.autograd.grad(cube(x).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(tenon.compile(second)(x), second(x))


def test_one_without_a_derivative_raises_as_torch_does():
    @torch.library.custom_op("tenon_test::plain", mutates_args=())
    def plain(x: Tensor) -> Tensor:
        return x.clone()

    plain.register_fake(torch.empty_like)
    x = torch.ones(3, requires_grad=True)
    for function in (lambda x: plain(x) * 2, tenon.compile(lambda x: plain(x) * 2)):
        with pytest.raises(RuntimeError, match="no autograd formula"):
            function(x).sum().backward()


def test_wrong_arguments_raise_as_torch_does():
    x = torch.ones(3, requires_grad=True)
    for call in (lambda x: cube(x, x), lambda x: scaled(x), lambda x: cube(x, other=1)):
        with pytest.raises((RuntimeError, TypeError)) as theirs:
            call(x)
        with pytest.raises(type(theirs.value)) as ours:
            tenon.compile(call)(x)
        assert str(ours.value) == str(theirs.value)
