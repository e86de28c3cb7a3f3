"""What `tenon._by_torch` computes by functions of torch's."""
import random

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

from tenon import _by_torch  # noqa: E402


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 6])
def test_convolutions_with_channels_last(rank, size):
    x, weight, bias = torch.randn(2, 4, *[size] * rank), torch.randn(6, 2, *[3] * rank), torch.randn(6)
    want = (F.conv1d, F.conv2d, F.conv3d)[rank - 1](x, weight, bias, 2, 1, 1, 2)
    got = _by_torch.convolution_channels_last(x.movedim(1, -1), weight.movedim(1, -1), bias, [2] * rank, [1] * rank, [1] * rank, 2)
    torch.testing.assert_close(got, want.movedim(1, -1))


def test_indices_of_inner_dimensions():
    x, values, at = torch.randn(2, 5, 7), torch.randn(2, 3, 7), torch.tensor([4, 0, 2])
    want = x.clone()
    want[:, at] = values
    torch.testing.assert_close(_by_torch.index_put(x, values, [at], [1]), want)


@pytest.mark.parametrize("seed", range(30))
def test_convolutions_of_odd_windows(seed):
    draw = random.Random(seed)
    kernel, stride, dilation, size = ([draw.randint(low, high) for _ in range(2)] for low, high in ((1, 3), (1, 3), (1, 2), (7, 12)))
    before, after, groups = [draw.randint(-1, 2) for _ in range(2)], [draw.randint(-1, 3) for _ in range(2)], draw.choice([1, 2])
    x = torch.randn(2, 4, *size, dtype=torch.float64)
    weight = torch.randn(6, 4 // groups, *kernel, dtype=torch.float64, requires_grad=True)
    want = F.conv2d(F.pad(x, [before[1], after[1], before[0], after[0]]), weight, None, stride, 0, dilation, groups)
    torch.testing.assert_close(_by_torch.conv_sum(x, weight, stride, before, after, dilation, groups), want)
    gradient = torch.randn_like(want)
    torch.testing.assert_close(_by_torch.conv_weight_sum(x, gradient, kernel, stride, before, dilation, groups), torch.autograd.grad(want, weight, gradient)[0])
