"""Random programs of tensors, drawn from a seed, and their inputs."""
from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass

import torch
from torch import Tensor

from tests.fuzz_tensors.steps import EXACT, JUMPY, STEADY, Step

SIZES = {"small": (1, 2, 3, 4, 5, 8, 16, 17), "large": (1, 2, 3, 7, 16, 31, 64, 130)}
MOST_ELEMENTS = {"small": 20_000, "large": 400_000}


@dataclass(frozen=True)
class Drawn:
    """A step and what it takes: places among the values, counted modulo how many there are (-1 is the last). Only what is kept is given out."""

    step: Step
    first: int
    second: int
    choice: int
    kept: bool


class Program:
    def __init__(self, seed: int, sizes: str = "small") -> None:
        r = random.Random(f"{seed} {sizes}")
        steps = STEADY + JUMPY
        self.seed, self.sizes = seed, sizes
        self.keeps_all = keeps_all = r.random() < 0.5  # what nobody sees may be fused away
        self.steps = [
            Drawn(r.choice(steps), r.randrange(60) if keeps_all or r.random() < 0.4 else -1, r.randrange(60), r.randrange(1000), keeps_all or r.random() < 0.3)
            for _ in range(r.randint(2, 14))
        ]

    def inputs(self, more: int = 0) -> list[Tensor]:
        """One to three tensors; `more` makes the first dimension longer where it is not 1."""
        r = random.Random(self.seed)
        generator = torch.Generator().manual_seed(self.seed)
        return [_input(r, generator, self.sizes, more) for _ in range(r.randint(1, 3))]

    def run(self, inputs: list[Tensor]) -> list[Tensor]:
        """The values of the steps that suit their operands and are kept, and the last value."""
        values, exact, kept = list(inputs), [True] * len(inputs), []
        for drawn in self.steps:
            first, second = drawn.first % len(values), drawn.second % len(values)
            known = exact[first] and exact[second]
            if drawn.step in JUMPY and not known:
                continue
            made = drawn.step(values[first], _beside(values[first], values[second]), drawn.choice)
            if made is None:
                continue
            if made.numel() > MOST_ELEMENTS[self.sizes]:
                made = made.reshape(-1)[:50]
            values.append(made)
            exact.append(known and drawn.step in EXACT)
            kept.append(drawn.kept)
        made = values[len(inputs) :]
        return [value for value, keep in zip(made, kept) if keep or value is made[-1]]

    def __str__(self) -> str:
        shapes = [f"{str(x.dtype)[6:]}{list(x.shape)} strides {list(x.stride())}" for x in self.inputs()]
        return "; ".join(shapes + [f"{d.step.__name__}({d.first}, {d.second}, {d.choice})" for d in self.steps])


def _beside(x: Tensor, y: Tensor) -> Tensor:
    """`y`, or `x` where broadcasting the two would fill the memory."""
    sizes = itertools.zip_longest(reversed(x.shape), reversed(y.shape), fillvalue=1)
    return y if math.prod(max(pair) for pair in sizes) <= 4_000_000 else x


def _input(r: random.Random, generator: torch.Generator, sizes: str, more: int) -> Tensor:
    shape = [r.choice(SIZES[sizes]) for _ in range(r.randint(0, 4))]
    if shape and shape[0] > 1:
        shape[0] += more
    dtype = r.choice((torch.float32,) * 5 + (torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.bool, torch.uint8))
    x = torch.randn(shape, generator=generator) if dtype.is_floating_point else torch.randint(0, 5, shape, generator=generator)
    x, layout = x.to(dtype), r.random()
    if len(shape) >= 2 and layout < 0.3:
        return x.transpose(0, 1)
    return x.to(memory_format=torch.channels_last) if len(shape) == 4 and layout < 0.6 else x
