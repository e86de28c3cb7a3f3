"""Ops of the catalogue by torch's functions, where none of them says just what a node does: what graphs of ops call then.

A function is named like the op (``tenon ops show OP`` prints its schema), takes the operands by position, and the attributes by name.
"""
from __future__ import annotations

import builtins
import math
from typing import Any

import torch

F = torch.nn.functional
Tensor = torch.Tensor
Number = Any

# Where the function of torch's that the catalogue knows takes not all that a node may say.
INSTEAD = frozenset(["scatter", "logcumsumexp"])


# ---- elements


def detach(x: Tensor) -> Tensor:
    return x.detach()


def differentiated_once(x: Tensor, *, message: str = "") -> Tensor:
    return x


def no_gradient(x: Tensor, by: list[Tensor], *, message: str, ends: bool = False) -> Tensor:
    return x


def clone(x: Tensor) -> Tensor:
    return x.clone()


def tangent(x: Tensor) -> Tensor:
    return torch.zeros_like(x)


def fma(a: Tensor | Number, b: Tensor | Number, c: Tensor | Number) -> Tensor:
    return a * b + c


def trunc_divide(a: Tensor, b: Tensor | Number) -> Tensor:
    return torch.div(a, b, rounding_mode="trunc")


def bit_cast(x: Tensor, *, dtype: torch.dtype) -> Tensor:
    return x.view(dtype)


def nonzero_divisor(x: Tensor) -> Tensor:
    """Integers to divide by: torch's own division refuses 0."""
    return x


def checked(x: Tensor, condition: Tensor) -> Tensor:
    """The number itself; an IndexError where the condition is false."""
    return x.expand(2)[condition.to(torch.int64) - 3]


def where(condition: Tensor, a: Tensor | Number, b: Tensor | Number) -> Tensor:
    return torch.where(condition, a, b)


def binary_cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    return F.binary_cross_entropy(x, target, reduction="none")


# ---- new tensors


def eye(*, n: int, m: int, k: int = 0, dtype: torch.dtype, device: str | None = None) -> Tensor:
    rows, columns = torch.arange(n, device=device)[:, None], torch.arange(m, device=device)
    return (rows + k == columns).to(dtype)


# ---- reductions


def _reduced(function: Any, x: Tensor, dim: list[int] | None, keepdim: bool, **more: Any) -> Tensor:
    """By a function that takes no empty list, which stands for all dimensions."""
    if x.dim() == 0:
        return function(x[None], [0], False, **more)
    return function(x, dim or list(range(x.dim())), keepdim, **more)


def sum(x: Tensor, *, dim: list[int] | None = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    return _reduced(torch.sum, x, dim, keepdim, dtype=dtype)


def mean(x: Tensor, *, dim: list[int] | None = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    return _reduced(torch.mean, x, dim, keepdim, dtype=dtype)


def amax(x: Tensor, *, dim: list[int] | None = None, keepdim: bool = False, evenly: bool = False) -> Tensor:
    return _reduced(torch.amax, x, dim, keepdim)


def amin(x: Tensor, *, dim: list[int] | None = None, keepdim: bool = False, evenly: bool = False) -> Tensor:
    return _reduced(torch.amin, x, dim, keepdim)


def any(x: Tensor, *, dim: list[int] | None = None, keepdim: bool = False) -> Tensor:
    return _reduced(torch.any, x, dim, keepdim)


def all(x: Tensor, *, dim: list[int] | None = None, keepdim: bool = False) -> Tensor:
    return _reduced(torch.all, x, dim, keepdim)


def prod(x: Tensor, *, dim: list[int] | None = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Tensor:
    for d in sorted((d % max(x.dim(), 1) for d in dim or range(x.dim())), reverse=True):
        x = torch.prod(x, d, keepdim, dtype=dtype)
    return x if dtype is None else x.to(dtype)


def count_nonzero(x: Tensor, *, dim: list[int] | None = None, keepdim: bool = False) -> Tensor:
    return sum(x != 0, dim=dim, keepdim=keepdim, dtype=torch.int64)


def _place_of(function: Any, x: Tensor, dim: list[int] | None, keepdim: bool) -> Tensor:
    """The row-major place among the dimensions that are reduced."""
    dims = sorted(d % x.dim() for d in dim or range(x.dim()))
    rest = [d for d in range(x.dim()) if d not in dims]
    found = function(x.permute([*rest, *dims]).reshape([*(x.shape[d] for d in rest), -1]), -1)
    return found.reshape([1 if d in dims else n for d, n in enumerate(x.shape)]) if keepdim else found


def argmax(x: Tensor, *, dim: list[int] | None = None, keepdim: bool = False) -> Tensor:
    return _place_of(torch.argmax, x, dim, keepdim)


def argmin(x: Tensor, *, dim: list[int] | None = None, keepdim: bool = False) -> Tensor:
    return _place_of(torch.argmin, x, dim, keepdim)


def max_dim(x: Tensor, *, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return torch.max(x, dim, keepdim)


def min_dim(x: Tensor, *, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return torch.min(x, dim, keepdim)


def linalg_vector_norm(x: Tensor, *, ord: float = 2, dim: list[int] | None = None, keepdim: bool = False) -> Tensor:
    return _reduced(lambda x, dim, keepdim: torch.linalg.vector_norm(x, ord, dim, keepdim), x, dim, keepdim)


def median(x: Tensor, *, dim: int, ignore_nan: bool = False, evenly: bool = False) -> tuple[Tensor, Tensor]:
    return (torch.nanmedian if ignore_nan else torch.median)(x, dim, keepdim=True)


def kthvalue(x: Tensor, *, k: int, dim: int) -> tuple[Tensor, Tensor]:
    return torch.kthvalue(x, k, dim, keepdim=True)


def cummax(x: Tensor, *, dim: int, largest: bool = True) -> tuple[Tensor, Tensor]:
    return (torch.cummax if largest else torch.cummin)(x, dim)


def cumsum(x: Tensor, *, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    return torch.cumsum(x, dim, dtype=dtype)


def cumprod(x: Tensor, *, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    return torch.cumprod(x, dim, dtype=dtype)


def logcumsumexp(x: Tensor, *, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    return torch.logcumsumexp(x.to(dtype or x.dtype), dim)


# ---- the same elements otherwise


def reshape(x: Tensor, *, shape: list[int]) -> Tensor:
    return x.reshape(shape)


def permute(x: Tensor, *, dims: list[int]) -> Tensor:
    return x.permute(dims)


def expand(x: Tensor, *, size: list[int]) -> Tensor:
    return x.expand(size)


def flip(x: Tensor, *, dims: list[int]) -> Tensor:
    return x.flip(dims)


def repeat(x: Tensor, *, repeats: list[int]) -> Tensor:
    return x.repeat(repeats)


def slice(x: Tensor, *, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return x[_along(x, dim, start, end, step)]


def slice_scatter(x: Tensor, source: Tensor, *, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return torch.slice_scatter(x, source, dim, start, end, step)


def _along(x: Tensor, dim: int, start: int | None, end: int | None, step: int) -> tuple:
    return (builtins.slice(None),) * (dim % x.dim()) + (builtins.slice(start, end, step),)


def unbind(x: Tensor, *, dim: int = 0) -> tuple[Tensor, ...]:
    return torch.unbind(x, dim)


def pad(x: Tensor, *, before: list[int], after: list[int], mode: str = "constant", value: float = 0) -> Tensor:
    if mode == "constant":
        return F.pad(x, [n for pair in zip(reversed(before), reversed(after)) for n in pair], value=value)
    for dim, (b, a) in enumerate(zip(before, after)):
        if b or a:
            x = x.index_select(dim, _sources(x.shape[dim], b, a, mode, x.device))
    return x


def _sources(size: int, before: int, after: int, mode: str, device: torch.device) -> Tensor:
    """Which elements of a dimension stand in the padded one."""
    at = torch.arange(-before, size + after, device=device)
    if mode == "replicate":
        return at.clamp(0, size - 1)
    if mode == "circular":
        return at % size
    period = max(2 * size - 2, 1) if mode == "reflect" else 2 * size
    at = at % period
    return torch.where(at < size, at, (period if mode == "reflect" else period - 1) - at)


def spread(x: Tensor, *, stride: list[int]) -> Tensor:
    first = x.dim() - len(stride)
    sizes = [*x.shape[:first], *(max((n - 1) * s + 1, 0) for n, s in zip(x.shape[first:], stride))]
    made = x.new_zeros(sizes)
    made[(..., *(builtins.slice(None, None, s) for s in stride))] = x
    return made


# ---- indices


def _subscript(x: Tensor, indices: tuple, dims: list[int]) -> tuple:
    subscript = [builtins.slice(None)] * x.dim()
    for dim, index in zip(dims, indices):
        subscript[dim] = torch.as_tensor(index, device=x.device)  # a number would take the dimension away by itself
    return tuple(subscript)


def index(x: Tensor, *indices: Tensor | int, dims: list[int]) -> Tensor:
    return x[_subscript(x, indices, dims)]


def index_put(x: Tensor, values: Tensor | Number, *indices: Tensor | int, dims: list[int], accumulate: bool = False) -> Tensor:
    subscript = [None] * x.dim()
    for dim, each in zip(dims, indices):
        subscript[dim] = torch.as_tensor(each, device=x.device)
    while subscript and subscript[-1] is None:
        subscript.pop()
    return torch.ops.aten.index_put(x, subscript, torch.as_tensor(values, dtype=x.dtype, device=x.device), accumulate)


def scatter(x: Tensor, index: Tensor, source: Tensor | Number, *, dim: int, reduce: str = "", include_self: bool = True) -> Tensor:
    if not isinstance(source, Tensor):
        source = torch.full_like(index, source, dtype=x.dtype)
    if not reduce:
        return torch.scatter(x, dim, index, source)
    return torch.scatter_reduce(x, dim, index, source, reduce, include_self=include_self)


def index_add(x: Tensor, index: Tensor, source: Tensor | Number, *, dim: int, alpha: float = 1) -> Tensor:
    if not isinstance(source, Tensor):
        source = x.new_full([*x.shape[:dim], index.numel(), *x.shape[dim + 1:]], source)
    return torch.index_add(x, dim, index, source, alpha=alpha)


# ---- windows


def _per_dim(given: list[int] | None, rank: int, otherwise: int) -> list[int]:
    given = given or [otherwise]
    return given * rank if len(given) == 1 else given


def max_pool_with_indices(x: Tensor, *, kernel_size: list[int] | None = None, stride: list[int] | None = None, padding: list[int] | None = None,
                          dilation: list[int] | None = None, ceil_mode: bool = False, output_size: list[int] | None = None) -> tuple[Tensor, Tensor]:
    rank = len(output_size or kernel_size or [])
    if output_size is not None:
        return getattr(F, f"adaptive_max_pool{rank}d")(x, output_size, return_indices=True)
    window = (_per_dim(kernel_size, rank, 1), _per_dim(stride, rank, 1), _per_dim(padding, rank, 0), _per_dim(dilation, rank, 1))
    return getattr(F, f"max_pool{rank}d")(x, *window, ceil_mode=ceil_mode, return_indices=True)


def max_pool(x: Tensor, **windows: Any) -> Tensor:
    return max_pool_with_indices(x, **windows)[0]


def window_sum(x: Tensor, *, kernel_size: list[int] | None = None, stride: list[int] | None = None, padding: list[int] | None = None,
               dilation: list[int] | None = None, ceil_mode: bool = False, output_size: list[int] | None = None) -> Tensor:
    """The sums, dimension by dimension, of what a matrix of zeros and ones takes together."""
    rank = len(output_size or kernel_size or [])
    given = zip(_per_dim(kernel_size, rank, 1), _per_dim(stride, rank, 1), _per_dim(padding, rank, 0), _per_dim(dilation, rank, 1))
    for d, (kernel, step, before, between) in enumerate(given):
        dim = x.dim() - rank + d
        size = x.shape[dim]
        at = torch.arange(size, device=x.device)
        if output_size is not None:
            first, end = _parts(size, output_size[d], x.device)
            inside = (at >= first[:, None]) & (at < end[:, None])
        else:
            first = torch.arange(_count(size, kernel, step, before, between, ceil_mode), device=x.device)[:, None] * step - before
            inside = (at >= first) & (at < first + (kernel - 1) * between + 1) & ((at - first) % between == 0)
        x = torch.tensordot(x, inside.to(x.dtype), ([dim], [1])).movedim(-1, dim)
    return x


def window_size(*, size: list[int], kernel_size: list[int] | None = None, stride: list[int] | None = None, padding: list[int] | None = None,
                dilation: list[int] | None = None, ceil_mode: bool = False, output_size: list[int] | None = None, count_include_pad: bool = False,
                dtype: torch.dtype, device: str | None = None) -> Tensor:
    rank = len(size)
    made = torch.ones([], dtype=torch.int64, device=device)
    given = zip(_per_dim(kernel_size, rank, 1), _per_dim(stride, rank, 1), _per_dim(padding, rank, 0), _per_dim(dilation, rank, 1))
    for d, (kernel, step, before, between) in enumerate(given):
        if output_size is not None:
            first, end = _parts(size[d], output_size[d], device)
        else:
            first = torch.arange(_count(size[d], kernel, step, before, between, ceil_mode), device=device) * step - before
            end = (first + kernel).clamp(max=size[d] + (before if count_include_pad else 0))
            first = first if count_include_pad else first.clamp(min=0)
        made = made[..., None] * (end - first)
    return made.to(dtype)


def _parts(size: int, count: int, device: Any) -> tuple[Tensor, Tensor]:
    """Where the parts of a dimension begin and end."""
    at = torch.arange(count, device=device)
    return at * size // count, -(-(at + 1) * size // count)


def _count(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """The number of windows: none begins behind the input."""
    room = size + 2 * padding - (dilation * (kernel - 1) + 1)
    count = (math.ceil(room / stride) if ceil_mode else room // stride) + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def im2col(x: Tensor, *, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int]) -> Tensor:
    count = [_count(n, k, s, p, d, False) for n, k, s, p, d in zip(x.shape[2:], kernel_size, stride, padding, dilation)]
    return F.unfold(x, kernel_size, dilation, padding, stride).reshape(*x.shape[:2], *kernel_size, *count)


def col2im(x: Tensor, *, size: list[int], kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int]) -> Tensor:
    columns = x.reshape(x.shape[0], x.shape[1] * math.prod(kernel_size), math.prod(x.shape[2 + len(kernel_size):]))
    return F.fold(columns, size, kernel_size, dilation, padding, stride)


def grid_sampler(x: Tensor, grid: Tensor, *, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False) -> Tensor:
    return F.grid_sample(x, grid, mode, padding_mode, align_corners)


def upsample(x: Tensor, *, output_size: list[int], mode: str, align_corners: bool = False, scale0: float | None = None, scale1: float | None = None,
             scale2: float | None = None) -> Tensor:
    rank = len(output_size)
    scales = (scale0, scale1, scale2)[:rank]
    aten = torch.ops.aten
    if mode in ("nearest", "nearest_exact"):
        return getattr(aten, f"{'upsample_nearest' if mode == 'nearest' else '_upsample_nearest_exact'}{rank}d")(x, output_size, *scales)
    name = {"linear": ("linear1d", "bilinear2d", "trilinear3d")[rank - 1], "cubic": "bicubic2d"}[mode]
    return getattr(aten, f"upsample_{name}")(x, output_size, align_corners, *scales)
