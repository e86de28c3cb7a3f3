"""What the functions of torch and NumPy that split do where a size varies: views of parts, whose bounds are expressions of it.

Each gives NotImplemented where the library's own function has to do it.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch


def chunk(x: torch.Tensor, chunks: Any, dim: Any = 0) -> Any:
    """``torch.chunk``."""
    if not _is_dimension(x, dim) or chunks < 1:
        return NotImplemented
    return split(x, (x.shape[dim] + chunks - 1) // chunks, dim)


def split(x: torch.Tensor, split_size_or_sections: Any, dim: Any = 0) -> Any:
    """``torch.split`` into parts of one size."""
    each = split_size_or_sections
    if isinstance(each, (list, tuple)) or not _is_dimension(x, dim) or each < 1:
        return NotImplemented
    size, start, parts = x.shape[dim], 0, []
    while start + each < size:
        parts.append(_part(x, dim, start, start + each))
        start = start + each
    parts.append(_part(x, dim, start, size))
    return tuple(parts)


def tensor_split(x: torch.Tensor, indices_or_sections: Any, dim: Any = 0) -> Any:
    """``torch.tensor_split`` into a number of parts."""
    sections = indices_or_sections
    if type(sections) is not int or not _is_dimension(x, dim) or sections < 1:
        return NotImplemented
    bounds = _bounds(x.shape[dim], sections)
    return tuple([_part(x, dim, start, end) for start, end in zip(bounds, bounds[1:])])


def array_split(ary: np.ndarray, indices_or_sections: Any, axis: Any = 0) -> Any:
    """``np.array_split`` into a number of parts."""
    sections = indices_or_sections
    if type(sections) is not int or not _is_dimension(ary, axis) or sections < 1:
        return NotImplemented
    bounds = _bounds(ary.shape[axis], sections)
    return [_part(ary, axis, start, end) for start, end in zip(bounds, bounds[1:])]


def _is_dimension(x: Any, dim: Any) -> bool:
    return type(dim) is int and -x.ndim <= dim < x.ndim


def _part(x: Any, dim: int, start: Any, end: Any) -> Any:
    """The view of a part along one dimension."""
    return x[(*[slice(None)] * (dim % x.ndim), slice(start, end))]


def _bounds(size: Any, sections: int) -> list[Any]:
    """Where parts begin and the last one ends, the first ones longer by one where it does not come out even."""
    bounds: list[Any] = [0]
    for part in range(sections):
        bounds.append(bounds[-1] + (size + sections - 1 - part) // sections)
    return bounds
