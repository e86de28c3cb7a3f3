"""What is measured: each workload is a function, its arguments, and a float64 judge."""
from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

from demo import digits, measure, photo


@dataclasses.dataclass
class Workload:
    """A program to measure.

    Parameters
    ----------
    name
        As printed.
    fn
        The function or module, for PyTorch or NumPy.
    args
        Its arguments, made once.
    library
        ``"torch"`` or ``"numpy"``; only torch programs have torch.compile as a peer.
    judge
        Computes the result in float64 from the same arguments.
    """

    name: str
    fn: Callable
    args: tuple
    library: str
    judge: Callable


def _torch(name: str, fn: Callable, *args: torch.Tensor) -> Workload:
    def judge(*given: torch.Tensor) -> torch.Tensor:
        program = copy.deepcopy(fn).double() if isinstance(fn, torch.nn.Module) else fn
        return program(*(t.double() for t in given))

    return Workload(name, fn, args, "torch", judge)


def _photo(height: int, width: int) -> Workload:
    picture = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)

    def judge(given: np.ndarray) -> np.ndarray:
        return measure.in_float64(photo.develop)(given)

    return Workload(f"photo.develop {height}×{width}", photo.develop, (picture,), "numpy", judge)


def _digits(batch: int) -> Workload:
    torch.manual_seed(0)
    return _torch(f"digits network, batch {batch}", digits.Digits().eval(), torch.rand(batch, 64) * 16)


def all_workloads() -> list[Workload]:
    """The workloads, in the order of the table."""
    torch.manual_seed(0)
    big, other, small = torch.randn(4096, 4096), torch.randn(4096, 4096), torch.randn(256, 256)

    def relu_chain(x):
        return torch.relu(x + 1) * 2

    def waves(x, y):
        return torch.sin(x) + torch.cos(y)

    def gelu_norm(x):
        return F.layer_norm(F.gelu(x) + x, (4096,))

    def masked_softmax(x):
        return torch.softmax(x / 8, -1) * (x > 0)

    return [
        _torch("relu(x+1)*2, 4096²", relu_chain, big),
        _torch("relu(x+1)*2, 4096², transposed", relu_chain, big.t()),
        _torch("relu(x+1)*2, 256²", relu_chain, small),
        _torch("sin(x)+cos(y), 4096²", waves, big, other),
        _torch("layer_norm(gelu(x)+x), 4096²", gelu_norm, big),
        _torch("softmax(x/8)*(x>0), 4096²", masked_softmax, big),
        _torch("x+1, one element", lambda x: x + 1, torch.randn(1)),
        _digits(1797),
        _photo(427, 640),
        _photo(1080, 1920),
    ]
