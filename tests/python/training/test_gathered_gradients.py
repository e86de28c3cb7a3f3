"""Gradients of what reads elements at places that loops say: windows, resizing, padding. Each is a sum over the readers of an element, no scatter."""
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional

RESIZED = {"nearest": (2, 3, 4, 6), "nearest-exact": (2, 3, 4, 6), "bilinear": (2, 3, 5, 7), "bicubic": (2, 3, 5, 7), "linear": (2, 3, 9), "trilinear": (1, 2, 3, 4, 5)}

PROGRAMS = {
    **{f"{mode} by {factor}": (lambda x, mode=mode, factor=factor: F.interpolate(x, scale_factor=factor, mode=mode), shape)
       for mode, shape in RESIZED.items() for factor in (0.5, 1.0, 2.0)},
    "bilinear by 2.3, aligned": (lambda x: F.interpolate(x, scale_factor=2.3, mode="bilinear", align_corners=True), (2, 3, 5, 7)),
    "bicubic to one": (lambda x: F.interpolate(x, size=(1, 1), mode="bicubic"), (2, 3, 5, 7)),
    "pooling, padded": (lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 3, 8, 9)),
    "pooling, the padding not counted": (lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), (2, 3, 8, 9)),
    "windows with gaps": (lambda x: F.avg_pool2d(x, 2, 3), (2, 3, 8, 9)),
    "adaptive pooling": (lambda x: F.adaptive_avg_pool2d(x, (3, 5)), (2, 3, 8, 9)),
    "unfold": (lambda x: F.unfold(x, 3, 2, 1, 2), (2, 3, 8, 9)),
    "reflected": (lambda x: F.pad(x, (1, 2, 3, 0), "reflect"), (2, 3, 5, 6)),
    "replicated": (lambda x: F.pad(x, (2, 2, 2, 2), "replicate"), (2, 3, 5, 6)),
    "circular": (lambda x: F.pad(x, (1, 2, 3, 0), "circular"), (2, 3, 5, 6)),
    "rolled": (lambda x: x.roll((3, -2), (1, 2)), (2, 5, 6)),
}

SCATTERED = {
    "replicated many times": (lambda x: F.pad(x, (40, 40), "replicate"), (2, 3, 4)),
    "places that are data": (lambda x: x[:, (x.detach() > 0).sum(1) % 5], (4, 5)),
}


def gradients(call, x):
    x = x.clone().requires_grad_()
    y = call(x)
    weight = torch.arange(1.0, 1 + y.numel(), dtype=y.dtype).view(y.shape).cos()
    first, = torch.autograd.grad(y, x, weight, retain_graph=True)
    second, = torch.autograd.grad((torch.autograd.grad((y.square() * weight).sum(), x, create_graph=True)[0] ** 2).sum(), x)
    return y.detach(), first, second


@pytest.mark.parametrize("call, shape", [*PROGRAMS.values(), *SCATTERED.values()], ids=[*PROGRAMS, *SCATTERED])
def test_gradients_of_both_orders(call, shape):
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(gradients(tenon.compile(call), x), gradients(call, x), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("call, shape", PROGRAMS.values(), ids=PROGRAMS)
def test_no_backward_scatters(call, shape):
    compiled = tenon.compile(call)
    x = torch.randn(shape, requires_grad=True)
    assert "index_put" not in str(tenon.explain(compiled)(x)).split("Backward 1:")[1]


def test_infinite_gradients_reach_their_element_alone():
    x = torch.randn(1, 1, 4, 4, requires_grad=True)
    weight = torch.ones(1, 1, 2, 2)
    weight[0, 0, 0, 0] = torch.inf
    wide = torch.autograd.grad(F.avg_pool2d(x, 3, 2, 1), x, weight)[0]
    torch.testing.assert_close(torch.autograd.grad(tenon.compile(lambda x: F.avg_pool2d(x, 3, 2, 1))(x), x, weight)[0], wide)


def test_sizes_that_vary():
    compiled = tenon.compile(lambda x: F.interpolate(F.avg_pool2d(x, 3, 1, 1), size=(6, 5), mode="bilinear"))
    for size in (5, 6, 7, 9):
        x = torch.randn(2, 3, size, size + 1, dtype=torch.float64)
        torch.testing.assert_close(gradients(compiled, x), gradients(lambda x: F.interpolate(F.avg_pool2d(x, 3, 1, 1), size=(6, 5), mode="bilinear"), x))


def test_on_halves():
    x = torch.randn(2, 3, 6, 7, dtype=torch.bfloat16, requires_grad=True)
    y = F.interpolate(x, scale_factor=2, mode="bilinear")
    weight = torch.randn_like(y)
    mine = torch.autograd.grad(tenon.compile(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"))(x), x, weight)[0]
    exact = x.detach().double().requires_grad_()
    judge = torch.autograd.grad(F.interpolate(exact, scale_factor=2, mode="bilinear"), exact, weight.double())[0]
    eager = torch.autograd.grad(y, x, weight)[0]
    assert mine.dtype == torch.bfloat16
    assert (mine.double() - judge).norm() <= 1.1 * (eager.double() - judge).norm()


def test_a_sparse_gradient_is_sparse():
    """The graph ends before it, and torch goes on."""
    b = torch.tensor([[0, 2], [1, 1]])

    def fn(a):
        return torch.gather(a * 2, 1, b, sparse_grad=True).sin() + torch.gather(a, 1, b, sparse_grad=False)

    leaf = torch.rand(2, 4, requires_grad=True)
    grads = [torch.autograd.grad(f(leaf).sum(), leaf)[0] for f in (fn, tenon.compile(fn))]
    torch.testing.assert_close(grads[1].to_dense(), grads[0].to_dense())  # what is compiled gives dense ones
    a, other = torch.rand(2, 4, requires_grad=True), torch.rand(2, 4, requires_grad=True)
    torch.gather(a, 1, b, sparse_grad=True).sum().backward()
    tenon.compile(lambda x: torch.gather(x, 1, b, sparse_grad=True))(other).sum().backward()
    assert a.grad.layout == other.grad.layout == torch.sparse_coo
