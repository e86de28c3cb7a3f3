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
    """``torch.tensor_split``."""
    bounds = _bounds(x, indices_or_sections, dim)
    return NotImplemented if bounds is None else tuple(_parts(x, dim, bounds))


def numpy_array_split(ary: np.ndarray, indices_or_sections: Any, axis: Any = 0) -> Any:
    """``np.array_split``."""
    bounds = _bounds(ary, indices_or_sections, axis)
    return NotImplemented if bounds is None else _parts(ary, axis, bounds)


def numpy_split(ary: np.ndarray, indices_or_sections: Any, axis: Any = 0) -> Any:
    """``np.split``; into a number of parts, NumPy raises where these are not alike."""
    if not isinstance(indices_or_sections, (list, tuple)):
        if not _is_dimension(ary, axis) or type(indices_or_sections) is not int or indices_or_sections < 1 or ary.shape[axis] % indices_or_sections:
            return NotImplemented
        each = ary.shape[axis] // indices_or_sections
        return _parts(ary, axis, [part * each for part in range(indices_or_sections)] + [ary.shape[axis]])
    return numpy_array_split(ary, indices_or_sections, axis)


def _is_dimension(x: Any, dim: Any) -> bool:
    return type(dim) is int and -x.ndim <= dim < x.ndim


def _part(x: Any, dim: int, start: Any, end: Any) -> Any:
    """The view of a part along one dimension."""
    return x[(*[slice(None)] * (dim % x.ndim), slice(start, end))]


def _parts(x: Any, dim: int, bounds: list[Any]) -> list[Any]:
    return [_part(x, dim, start, end) for start, end in zip(bounds, bounds[1:])]


def _bounds(x: Any, indices_or_sections: Any, dim: Any) -> list[Any] | None:
    """Where parts begin and the last one ends; of a number of parts, the first ones longer by one where it does not come out even."""
    if not _is_dimension(x, dim):
        return None
    if isinstance(indices_or_sections, (list, tuple)):
        return [0, *indices_or_sections, x.shape[dim]] if all(map(_is_int, indices_or_sections)) else None
    if type(indices_or_sections) is not int or indices_or_sections < 1:
        return None
    bounds: list[Any] = [0]
    for part in range(indices_or_sections):
        bounds.append(bounds[-1] + (x.shape[dim] + indices_or_sections - 1 - part) // indices_or_sections)
    return bounds


def _is_int(number: Any) -> bool:
    """Whether it is an int, or stands for one that varies."""
    return type(number) is int or type(number).__name__ == "IntStandIn"
