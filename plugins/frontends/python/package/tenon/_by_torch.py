"""Ops that torch has no function for, by functions that it has: for tensors of a device on which no backend has kernels for them."""
from __future__ import annotations

import torch


def conv_sum(input: torch.Tensor, weight: torch.Tensor, stride: list[int], before: list[int], after: list[int], dilation: list[int], groups: int = 1) -> torch.Tensor:
    if before != after or min(before) < 0:
        input, before = _padded(input, before, after), [0] * len(before)
    return torch.convolution(input, weight, None, stride, before, dilation, False, [0] * len(stride), groups)


def conv_weight_sum(input: torch.Tensor, gradient: torch.Tensor, kernel: list[int], stride: list[int], before: list[int], dilation: list[int], groups: int = 1) -> torch.Tensor:
    sizes, results = input.shape[2:], gradient.shape[2:]
    reach = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(results, stride, dilation, kernel)]
    after = [r - n - b for r, n, b in zip(reach, sizes, before)]  # as far as the last window reaches
    if min(before) < 0 or any(a > b or b - a >= s for a, b, s in zip(after, before, stride)):  # other sizes than torch finds with as much on both sides
        input, before = _padded(input, before, after), [0] * len(before)
    weight = input.new_empty(1).expand(gradient.shape[1], input.shape[1] // groups, *kernel)
    nothing = [0] * len(stride)
    return torch.ops.aten.convolution_backward(gradient, input, weight, None, stride, before, dilation, False, nothing, groups, [False, True, False])[1]


def _padded(x: torch.Tensor, before: list[int], after: list[int]) -> torch.Tensor:
    """Zeros around the last dimensions; where there are less than none, elements are left out."""
    return torch.nn.functional.pad(x, [n for pair in zip(reversed(before), reversed(after)) for n in pair])
