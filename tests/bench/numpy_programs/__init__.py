"""Programs of NumPy's users, each a function of arrays with a maker of its arguments; nothing here imports more than NumPy."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Program:
    """A program and its arguments.

    Parameters
    ----------
    fn
        Plain NumPy.
    make
        Arguments for a size: a side of a grid, particles, frames.
    size
        What is measured.
    small
        What a test checks.
    """

    fn: Callable
    make: Callable[[int], tuple]
    size: int
    small: int

    @property
    def name(self) -> str:
        return self.fn.__name__

    @property
    def area(self) -> str:
        return self.fn.__module__.rpartition(".")[2]


def random(*shape: int, seed: int = 0) -> np.ndarray:
    """Uniform doubles from 0 to 1."""
    return np.random.default_rng(seed).random(shape)


def all_programs() -> dict[str, Program]:
    """By name, in the order of the tables."""
    from tests.bench.numpy_programs import audio, image, physics

    return {program.name: program for area in (physics, audio, image) for program in area.PROGRAMS}
