"""Copies of tensors for graphs whose calls write into their inputs."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch


def copy_with_strides(x: torch.Tensor | np.ndarray) -> Any:
    """A copy with the very strides of `x`, gaps and negative steps included, so that calls view or copy it as they would `x`."""
    if not isinstance(x, np.ndarray):
        return x.new_empty_strided(x.shape, x.stride()).copy_(x)
    reach = [stride * (size - 1) for size, stride in zip(x.shape, x.strides)]
    before = -sum(step for step in reach if step < 0)
    memory = np.empty(before + sum(step for step in reach if step > 0) + x.itemsize, np.uint8)
    copy = np.ndarray(x.shape, x.dtype, memory, before, x.strides)
    copy[...] = x
    return copy
