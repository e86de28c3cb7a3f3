from collections.abc import Callable
from typing import assert_type

import numpy as np
import numpy.typing as npt

import tenon

Vector = npt.NDArray[np.float64]


def integrate(slope: Callable[[Vector, float], Vector], start: Vector, steps: int) -> Vector:
    for step in range(steps):
        start = start + slope(start, step / steps) / steps
    return start


def decay(y: Vector, time: float) -> Vector:
    return -y * time


assert_type(integrate(tenon.compile(decay), np.ones(2), 4), Vector)
