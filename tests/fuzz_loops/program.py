"""Random loops over one to three state arrays, drawn from a seed, that NumPy and torch run alike."""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

try:
    import torch
except ImportError:
    torch = None

SHAPES = ((4000,), (64, 64), (200, 200), (30, 500), (12, 20, 20))
ITERATIONS = (5, 10, 20, 40)


def roll(x: Any, shift: int, axis: int) -> Any:
    return np.roll(x, shift, axis) if isinstance(x, np.ndarray) else torch.roll(x, shift, axis)


def concatenate(parts: Sequence[Any], axis: int) -> Any:
    return np.concatenate(parts, axis) if isinstance(parts[0], np.ndarray) else torch.cat(tuple(parts), axis)


def where(mask: Any, a: Any, b: Any) -> Any:
    return np.where(mask, a, b) if isinstance(a, np.ndarray) else torch.where(mask, a, b)


def library(x: Any) -> Any:
    return np if isinstance(x, np.ndarray) else torch


def part(x: Any, axis: int, start: int, stop: int | None) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def padded(x: Any, axis: int) -> Any:
    """A zero before and one after."""
    if isinstance(x, np.ndarray):
        return np.pad(x, [(int(a == axis),) * 2 for a in range(x.ndim)])
    return torch.nn.functional.pad(x, [int(a == axis) for a in reversed(range(x.ndim)) for _ in range(2)])


# Each takes an array, a number that chooses, and constant arrays, and gives an array of the same shape whose values stay in bounds.
def shifted(x: Any, c: int, constants: dict[str, Any]) -> Any:
    return roll(x, 1 + c % 3, c % x.ndim)


def smoothed(x: Any, c: int, constants: dict[str, Any]) -> Any:
    axis = c % x.ndim
    return 0.5 * (roll(x, 1, axis) + roll(x, -1, axis)) - 0.5 * x


def laplacian(x: Any, c: int, constants: dict[str, Any]) -> Any:
    total = sum(roll(x, s, axis) for axis in range(x.ndim) for s in (1, -1))
    return total / (2 * x.ndim) - x


def stencil_of_padded(x: Any, c: int, constants: dict[str, Any]) -> Any:
    axis = c % x.ndim
    p = padded(x, axis)
    return 0.4 * (part(p, axis, 2, None) + part(p, axis, 0, -2))


def neighbour_by_concatenation(x: Any, c: int, constants: dict[str, Any]) -> Any:
    axis = c % x.ndim
    return concatenate((part(x, axis, -1, None), part(x, axis, 0, -1)), axis)


def differences(x: Any, c: int, constants: dict[str, Any]) -> Any:
    axis = c % x.ndim
    return concatenate((part(x, axis, 1, None) - part(x, axis, 0, -1), 0 * part(x, axis, 0, 1)), axis)


def scanned(x: Any, c: int, constants: dict[str, Any]) -> Any:
    axis = c % x.ndim
    return library(x).cumsum(x, axis) / x.shape[axis]


def gathered(x: Any, c: int, constants: dict[str, Any]) -> Any:
    return x[constants["order"]]


def centred(x: Any, c: int, constants: dict[str, Any]) -> Any:
    axis = c % x.ndim
    return x - (x.mean(axis, keepdims=True) if isinstance(x, np.ndarray) else x.mean(axis, keepdim=True))


def scaled_by_most(x: Any, c: int, constants: dict[str, Any]) -> Any:
    return x / (1 + abs(x).max())


def clipped(x: Any, c: int, constants: dict[str, Any]) -> Any:
    return library(x).clip(x, -0.7, 0.8)


def bent(x: Any, c: int, constants: dict[str, Any]) -> Any:
    return (library(x).tanh, library(x).sin, lambda v: library(x).exp(-v * v))[c % 3](x)


# Where it changes sides a choice has no jump, so that a rounding error stays one.
def chosen(x: Any, c: int, constants: dict[str, Any]) -> Any:
    return where(x > 0, x, -x * roll(x, 1, c % x.ndim))


def multiplied(x: Any, c: int, constants: dict[str, Any]) -> Any:
    return x @ constants["mixing"] if x.ndim > 1 else x * constants["mixing"]


def flipped(x: Any, c: int, constants: dict[str, Any]) -> Any:
    return library(x).flip(x, (c % x.ndim,))


def inner_written(x: Any, c: int, constants: dict[str, Any]) -> Any:
    y = x.copy() if isinstance(x, np.ndarray) else x.clone()
    axis = c % x.ndim
    inner = (slice(None),) * axis + (slice(1, -1),)
    y[inner] += 0.3 * (part(x, axis, 2, None) + part(x, axis, 0, -2) - 2 * x[inner])
    return y


def edge_written(x: Any, c: int, constants: dict[str, Any]) -> Any:
    y = x.copy() if isinstance(x, np.ndarray) else x.clone()
    axis = c % x.ndim
    y[(slice(None),) * axis + (0,)] = x[(slice(None),) * axis + (1,)]
    return y


FUNCTIONS: tuple[Callable[[Any, int, dict[str, Any]], Any], ...] = (
    shifted, shifted, smoothed, laplacian, stencil_of_padded, neighbour_by_concatenation, differences, scanned, gathered, centred,
    scaled_by_most, clipped, bent, chosen, multiplied, flipped, inner_written, edge_written,
)  # fmt: skip


@dataclass(frozen=True)
class Statement:
    """`states[to] = a * states[first] + b * f(g(states[second]))`, or a choice between the two."""

    to: int
    first: int
    second: int
    functions: tuple[tuple[int, int], ...]
    way: int

    def __str__(self) -> str:
        made = f"s{self.second}"
        for f, c in self.functions:
            made = f"{FUNCTIONS[f].__name__}({made}, {c})"
        return f"s{self.to} = {('mix', 'smaller', 'choice', 'sum')[self.way]}(s{self.first}, {made})"


class Loop:
    def __init__(self, seed: int) -> None:
        r = random.Random(f"loop {seed}")
        self.seed = seed
        self.library = "torch" if torch and r.random() < 0.5 else "numpy"
        self.shape = r.choice(SHAPES)
        self.dtype = r.choice(("float32", "float64"))
        self.count = r.randint(1, 3)
        self.statements = [self._statement(r) for _ in range(r.randint(1, 4))]

    def _statement(self, r: random.Random) -> Statement:
        functions = tuple((r.randrange(len(FUNCTIONS)), r.randrange(6)) for _ in range(r.choice((0, 1, 1, 1, 2, 2))))
        return Statement(r.randrange(self.count), r.randrange(self.count), r.randrange(self.count), functions, r.choice((0, 0, 0, 1, 2, 3)))

    def inputs(self) -> list[Any]:
        """The states, then the constants that functions take."""
        r = np.random.default_rng(self.seed)
        columns = self.shape[-1]
        mixing = r.uniform(-1, 1, (columns, columns) if len(self.shape) > 1 else columns) / (columns if len(self.shape) > 1 else 1)
        arrays = [r.uniform(-1, 1, self.shape).astype(self.dtype) for _ in range(self.count)] + [mixing.astype(self.dtype), r.permutation(self.shape[0])]
        return [torch.from_numpy(a) for a in arrays] if self.library == "torch" else arrays

    def run(self, iterations: int, inputs: Sequence[Any]) -> tuple[Any, ...]:
        *states, mixing, order = inputs
        constants = {"mixing": mixing, "order": order}
        for _ in range(iterations):
            for s in self.statements:
                made = states[s.second]
                for f, c in s.functions:
                    made = FUNCTIONS[f](made, c, constants)
                kept = states[s.first]
                if s.way == 0:
                    states[s.to] = 0.6 * kept + 0.35 * made
                elif s.way == 1:
                    states[s.to] = library(kept).minimum(kept, made)
                elif s.way == 2:
                    states[s.to] = where(kept > made, kept, made)
                else:
                    states[s.to] = 0.5 * (kept + made)
        return tuple(states)

    def __str__(self) -> str:
        return f"{self.library} {self.dtype}{list(self.shape)}: " + "; ".join(map(str, self.statements))
