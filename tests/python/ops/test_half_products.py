"""Products of half precision: as near to float64 as eager execution is, over 20 draws, in every layout that has a kernel of its own."""
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F

import tenon

DRAWS = 20
PROGRAMS = {
    "square": (lambda x, w: x @ w, (70, 130), (130, 90)),
    "rows of a transposed weight": (F.linear, (8, 256), (300, 256)),
    "one row of a transposed weight": (F.linear, (1, 512), (130, 512)),
    "one row": (lambda x, w: x @ w, (1, 256), (256, 300)),
    "few rows": (lambda x, w: x @ w, (4, 256), (256, 131)),
    "odd sum": (lambda x, w: x @ w, (40, 131), (131, 65)),
    "strided rows": (lambda x, w: x[:, ::2] @ w, (40, 256), (128, 64)),
    "odd rows": (lambda x, w: x[:, :-1] @ w, (40, 129), (128, 64)),
    "batch": (torch.matmul, (3, 40, 64), (3, 64, 70)),
    "heads": (lambda x, w: x.transpose(1, 2) @ w.transpose(-1, -2), (2, 20, 4, 64), (2, 4, 30, 64)),
    "bias and activation": (lambda x, w: F.gelu(F.linear(x, w, w[:, 0])), (50, 128), (96, 128)),
    "normalised before": (lambda x, w: F.layer_norm(x, x.shape[-1:]) @ w, (64, 128), (128, 96)),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1), (2, 32, 9, 9), (40, 32, 3, 3)),
    "convolution of one tap": (F.conv2d, (2, 64, 9, 9), (40, 64, 1, 1)),
    "convolution with strides": (lambda x, w: F.conv2d(x, w, stride=2, padding=2), (3, 32, 19, 17), (24, 32, 5, 5)),
    "convolution with gaps": (lambda x, w: F.conv2d(x, w, padding=(2, 0), dilation=(2, 1)), (2, 48, 12, 11), (33, 48, 3, 2)),
    "convolution of groups": (lambda x, w: F.conv2d(x, w, padding=1, groups=2), (2, 64, 9, 9), (64, 32, 3, 3)),
    "convolution of odd channels": (lambda x, w: F.conv2d(x, w, padding=1), (2, 35, 9, 9), (40, 35, 3, 3)),
    "convolution of pictures": (lambda x, w: F.conv2d(x, w, stride=2, padding=3), (2, 3, 32, 32), (64, 3, 7, 7)),
    "convolution of sequences": (lambda x, w: F.conv1d(x, w, padding=1), (2, 64, 40), (48, 64, 3)),
    "convolution that is pooled": (lambda x, w: F.max_pool2d(F.relu(F.conv2d(x, w, padding=1)), 3, 2, 1), (4, 32, 24, 24), (64, 32, 3, 3)),
    "convolution with what follows": (lambda x, w: F.relu(F.conv2d(x, w, w[:, 0, 0, 0], padding=1) + 1), (16, 64, 8, 8), (128, 64, 3, 3)),
    "gradient": (lambda x, w: x.transpose(0, 1) @ w, (130, 70), (130, 90)),
}


def errors(results, truths):
    return sum(float((r.double() - t).square().mean()) for r, t in zip(results, truths)) ** 0.5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_errors_are_eager_s(name, dtype):
    fn, *shapes = PROGRAMS[name]
    compiled, plain, ours, truths = tenon.compile(fn, fullgraph=True), [], [], []
    for _ in range(DRAWS):
        args = [torch.randn(shape).to(dtype) for shape in shapes]
        plain.append(fn(*args))
        ours.append(compiled(*args))
        truths.append(fn(*(a.double() for a in args)))
        assert (ours[-1].dtype, ours[-1].shape, ours[-1].stride()) == (dtype, plain[-1].shape, plain[-1].stride())
    assert errors(ours, truths) <= 1.1 * errors(plain, truths)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_numbers_that_are_not_finite_pass_through(dtype):
    compiled = tenon.compile(torch.mm)
    for special in (float("inf"), float("-inf"), float("nan")):
        x, w = torch.randn(20, 64).to(dtype), torch.randn(64, 70).to(dtype)
        x[3, 5], w[7, 9] = special, special
        torch.testing.assert_close(compiled(x, w).isnan(), torch.mm(x, w).isnan())
        torch.testing.assert_close(compiled(x, w).isinf(), torch.mm(x, w).isinf())


@pytest.mark.parametrize("layer, shape", [(torch.nn.Linear(128, 96), (50, 128)), (torch.nn.Conv2d(32, 48, 3), (2, 32, 12, 12))], ids=["linear", "convolution"])
def test_weights_of_half_precision_are_packed_once(layer, shape):
    """Frozen weights give what weights that are packed in each call give, and changed ones are seen where they are not frozen."""
    layer, x = layer.bfloat16(), torch.randn(shape, dtype=torch.bfloat16)
    with torch.no_grad():
        frozen, plain = tenon.compile(layer, options={"freeze": True}), tenon.compile(layer)
        for _ in range(3):
            torch.testing.assert_close(frozen(x), plain(x), rtol=0, atol=0)
        layer.weight.mul_(2)
        torch.testing.assert_close(plain(x), layer(x))
