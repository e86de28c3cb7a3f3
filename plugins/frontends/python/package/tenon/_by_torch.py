"""Ops that torch has no function for, by functions that it has: for tensors of a device on which no backend has kernels for them."""
from __future__ import annotations

import torch

from tenon import _ops


def conv_sum(input: torch.Tensor, weight: torch.Tensor, stride: list[int], before: list[int], after: list[int], dilation: list[int], groups: int = 1) -> torch.Tensor:
    if before != after or min(before) < 0:
        input, before = _padded(input, before, after), [0] * len(before)
    return torch.convolution(input, weight, None, stride, before, dilation, False, [0] * len(stride), groups)


def convolution_channels_last(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: list[int] | int = 1, padding: list[int] | int = 0, dilation: list[int] | int = 1, groups: int = 1) -> torch.Tensor:
    convolve = (torch.conv1d, torch.conv2d, torch.conv3d)[input.dim() - 3]
    pictures, weights = (tensor.contiguous().movedim(-1, 1) for tensor in (input, weight))
    return convolve(pictures, weights, bias, stride, padding, dilation, groups).movedim(1, -1)


def conv_weight_sum(input: torch.Tensor, gradient: torch.Tensor, kernel: list[int], stride: list[int], before: list[int], dilation: list[int], groups: int = 1) -> torch.Tensor:
    after = _reached(input.shape[2:], gradient, kernel, stride, before, dilation)
    if not _is_even(stride, before, after):
        input, before = _padded(input, before, after), [0] * len(before)
    weight = input.new_empty(1).expand(gradient.shape[1], input.shape[1] // groups, *kernel)
    nothing = [0] * len(stride)
    return torch.ops.aten.convolution_backward(gradient, input, weight, None, stride, before, dilation, False, nothing, groups, [False, True, False])[1]


def conv_input_sum(weight: torch.Tensor, gradient: torch.Tensor, sizes: list[int], stride: list[int], before: list[int], dilation: list[int], groups: int = 1) -> torch.Tensor:
    after = _reached(sizes, gradient, list(weight.shape[2:]), stride, before, dilation)
    even, nothing = _is_even(stride, before, after), [0] * len(stride)
    padding = before if even else nothing
    inside = sizes if even else [n + b + a for n, b, a in zip(sizes, before, after)]
    input = gradient.new_empty(1).expand(gradient.shape[0], weight.shape[1] * groups, *inside)
    found = torch.ops.aten.convolution_backward(gradient, input, weight, None, stride, padding, dilation, False, nothing, groups, [True, False, False])[0]
    return found if even else _padded(found, [-n for n in before], [-n for n in after])


def conv_weight_sum_channels_last(input: torch.Tensor, gradient: torch.Tensor, kernel: list[int], stride: list[int], before: list[int], dilation: list[int], groups: int = 1) -> torch.Tensor:
    pictures, gradients = (tensor.contiguous().movedim(-1, 1) for tensor in (input, gradient))
    return conv_weight_sum(pictures, gradients, kernel, stride, before, dilation, groups).movedim(1, -1)


def conv_input_sum_channels_last(weight: torch.Tensor, gradient: torch.Tensor, sizes: list[int], stride: list[int], before: list[int], dilation: list[int], groups: int = 1) -> torch.Tensor:
    weights, gradients = (tensor.contiguous().movedim(-1, 1) for tensor in (weight, gradient))
    return conv_input_sum(weights, gradients, sizes, stride, before, dilation, groups).movedim(1, -1)


def conv_gradients(weight: torch.Tensor, input: torch.Tensor, gradient: torch.Tensor, kernel: list[int], stride: list[int], before: list[int], dilation: list[int], groups: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Those of the input and of the weight."""
    if not _is_even(stride, before, _reached(input.shape[2:], gradient, kernel, stride, before, dilation)):
        return (conv_input_sum(weight, gradient, list(input.shape[2:]), stride, before, dilation, groups),
                conv_weight_sum(input, gradient, kernel, stride, before, dilation, groups))
    return torch.ops.aten.convolution_backward(gradient, input, weight, None, stride, before, dilation, False, [0] * len(stride), groups, [True, True, False])[:2]


def attention_gradients(gradient: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None, is_causal: bool = False, scale: float | None = None) -> tuple[torch.Tensor, ...]:
    """Those of query, key and value. The attention is computed again: which of its kernels torch takes, and what that keeps, torch knows."""
    with torch.enable_grad():
        leaves = [operand.detach().requires_grad_() for operand in (query, key, value)]
        result = torch.nn.functional.scaled_dot_product_attention(*leaves, attn_mask=attn_mask, is_causal=is_causal, scale=scale)
        return torch.autograd.grad(result, leaves, gradient)


def index_put(self: torch.Tensor, values: torch.Tensor, indices: list[torch.Tensor], dims: list[int], accumulate: bool = False) -> torch.Tensor:
    """Indices of any dimensions, not of the first ones alone."""
    return _ops.index_put(self, values, *indices, dims=dims, accumulate=accumulate)


def cumprod_gradient(input: torch.Tensor, gradient: torch.Tensor, dim: int) -> torch.Tensor:
    zeros = (input == 0).cumsum(dim)
    first = (input == 0) & (zeros == 1)
    before = (gradient * input.cumprod(dim)).flip(dim).cumsum(dim).flip(dim) / input
    behind = torch.where(zeros == 0, 0.0, gradient * torch.where(first, 1.0, input).cumprod(dim)).sum(dim, keepdim=True)
    return torch.where(zeros == 0, before, torch.where(first, behind, 0.0))


def _reached(sizes: list[int], gradient: torch.Tensor, kernel: list[int], stride: list[int], before: list[int], dilation: list[int]) -> list[int]:
    """How far behind an input the last window reaches; less than 0 where it ends before."""
    return [(n - 1) * s + d * (k - 1) + 1 - size - b for n, s, d, k, size, b in zip(gradient.shape[2:], stride, dilation, kernel, sizes, before)]


def _is_even(stride: list[int], before: list[int], after: list[int]) -> bool:
    """Whether torch finds the same windows with as much before as behind."""
    return min(before) >= 0 and all(a <= b and b - a < s for a, b, s in zip(after, before, stride))


def _padded(x: torch.Tensor, before: list[int], after: list[int]) -> torch.Tensor:
    """Zeros around the last dimensions; where there are less than none, elements are left out."""
    return torch.nn.functional.pad(x, [n for pair in zip(reversed(before), reversed(after)) for n in pair])
