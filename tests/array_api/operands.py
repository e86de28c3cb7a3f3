"""Arrays for the samples: values of a dtype in a memory layout, made anew for each call."""
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 7.25, 100.0, -17.0, 1e5, np.inf, -np.inf, np.nan]
EXTREME = [0, 1, 2, 3, 5, 7, 30, 64, 100, 127]


@dataclasses.dataclass(frozen=True)
class Operand:
    """An array of `values` whose memory is laid out as `layout` says: plain, transposed, reversed, spread, one."""

    values: np.ndarray
    layout: str = "plain"

    def make(self) -> np.ndarray:
        v = self.values
        if self.layout == "transposed":
            return np.array(v.T, order="C").T
        if self.layout == "reversed":
            every = (slice(None, None, -1),) * v.ndim
            return np.array(v[every], order="C")[every]
        if self.layout == "spread":
            every = (slice(None, None, 2),) * v.ndim
            whole = np.zeros([2 * n for n in v.shape], v.dtype)
            whole[every] = v
            return whole[every]
        if self.layout == "one":
            return np.broadcast_to(v[:1].copy(), v.shape)
        return np.array(v, order="C")


def made(value: Any) -> Any:
    """`value` with an array for each operand in it."""
    if isinstance(value, Operand):
        return value.make()
    if isinstance(value, (list, tuple)):
        return type(value)(made(item) for item in value)
    if isinstance(value, dict):
        return {key: made(item) for key, item in value.items()}
    return value


def values(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Ordinary values, a few of them equal, for arithmetic without overflow."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("uint"):
        return rng.integers(0, 12, shape).astype(dtype)
    if dtype.startswith("int"):
        return rng.integers(-9, 10, shape).astype(dtype)
    return np.round(rng.standard_normal(shape) * 3, 2).astype(dtype)


def array(dtype: str, *shape: int, layout: str = "plain", seed: int = 0) -> Operand:
    """Ordinary values in a layout."""
    return Operand(values(dtype, *shape, seed=seed), layout)


def special(dtype: str) -> Operand:
    """Zeros of both signs, infinities, NaN, subnormal, largest and smallest numbers; of integers the ends of their range."""
    if dtype == "bool":
        return Operand(np.array([True, False, True]))
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        return Operand(np.array([*EXTREME, info.min, info.min + 1, info.max, info.max - 1], dtype))
    info = np.finfo(dtype)
    ends = [info.max, info.min, info.tiny, -info.tiny, info.smallest_subnormal, info.eps]
    return Operand(np.array([*SPECIAL, *ends], dtype))


def positive(dtype: str, *shape: int, seed: int = 0, layout: str = "plain") -> Operand:
    """Values from one up."""
    return Operand((np.abs(values(dtype, *shape, seed=seed).astype("float64")) + 1).astype(dtype), layout)


def well_conditioned(dtype: str, *shape: int, seed: int = 0) -> Operand:
    """Symmetric positive definite matrices."""
    a = values("float64", *shape, seed=seed)
    return Operand((a @ a.swapaxes(-1, -2) + shape[-1] * 4 * np.eye(shape[-1])).astype(dtype))
