"""What is measured: each workload is a function, its arguments, and a float64 judge."""
from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

import tenon
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
    frozen
        Whether Tenon and its peer may keep what they make of parameters from call to call.
    mode
        Tenon's mode; the peer's stays the default.
    """

    name: str
    fn: Callable
    args: tuple
    library: str
    judge: Callable
    frozen: bool = False
    mode: str | None = None

    def compiled(self, settled: bool = False) -> Callable:
        """The program as Tenon runs it; ``settled``: from the first call on with the code that stays."""
        options = ({"freeze": True} if self.frozen else {}) | ({"llvm": {"swap_tiers": False}} if settled else {})
        return tenon.compile(self.fn, mode=self.mode, options=options or None)


def torch_workload(name: str, fn: Callable, *args: torch.Tensor) -> Workload:
    """A function or module of PyTorch, judged by itself in float64 (a copy: train mode changes running averages)."""

    def judge(*given: torch.Tensor) -> torch.Tensor:
        program = copy.deepcopy(fn).double() if isinstance(fn, torch.nn.Module) else fn
        return program(*(t.double() if t.is_floating_point() else t for t in given))

    return Workload(name, fn, args, "torch", judge)


def _photo(height: int, width: int) -> Workload:
    picture = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)

    def judge(given: np.ndarray) -> np.ndarray:
        return measure.in_float64(photo.develop)(given)

    return Workload(f"photo.develop {height}×{width}", photo.develop, (picture,), "numpy", judge)


def _digits(batch: int) -> Workload:
    torch.manual_seed(0)
    return torch_workload(f"digits network, batch {batch}", digits.Digits().eval(), torch.rand(batch, 64) * 16)


def _small(width: int = 10) -> list[tuple[str, Callable[[], Workload]]]:
    """Programs whose cost is the call itself."""

    def branch(x):
        return x * 2 if x.sum() > 0 else x - 1

    linears = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(100))).eval()
    return [
        ("x+1, one element", lambda: torch_workload("x+1, one element", lambda x: x + 1, torch.randn(1))),
        ("sin(x)+cos(y), 10×10", lambda: torch_workload("sin(x)+cos(y), 10×10", lambda x, y: torch.sin(x) + torch.cos(y), torch.randn(width, width), torch.randn(width, width))),
        ("branch on data, 10×10", lambda: torch_workload("branch on data, 10×10", branch, torch.rand(width, width))),
        ("100 Linear(4,4)", lambda: torch_workload("100 Linear(4,4)", linears, torch.randn(2, 4))),
    ]


def all_workloads() -> list[tuple[str, Callable[[], Workload]]]:
    """Names of the workloads and what makes them, in the order of the table."""
    def big() -> torch.Tensor:
        return torch.randn(4096, 4096)

    def relu_chain(x):
        return torch.relu(x + 1) * 2

    def waves(x, y):
        return torch.sin(x) + torch.cos(y)

    def gelu_norm(x):
        return F.layer_norm(F.gelu(x) + x, (4096,))

    def masked_softmax(x):
        return torch.softmax(x / 8, -1) * (x > 0)

    def made(name: str, make: Callable[[], tuple], fn: Callable) -> tuple[str, Callable[[], Workload]]:
        return name, lambda: torch_workload(name, fn, *make())

    return [
        made("relu(x+1)*2, 4096²", lambda: (big(),), relu_chain),
        made("relu(x+1)*2, 4096², transposed", lambda: (big().t(),), relu_chain),
        made("relu(x+1)*2, 256²", lambda: (torch.randn(256, 256),), relu_chain),
        made("sin(x)+cos(y), 4096²", lambda: (big(), big()), waves),
        made("layer_norm(gelu(x)+x), 4096²", lambda: (big(),), gelu_norm),
        made("softmax(x/8)*(x>0), 4096²", lambda: (big(),), masked_softmax),
        *_small(),
        ("digits network, batch 1797", lambda: _digits(1797)),
        ("digits network, batch 1", lambda: _digits(1)),
        made("mm 512³", lambda: (torch.randn(512, 512), torch.randn(512, 512)), torch.mm),
        *(made(f"mm {size}³, {dtype}", lambda s=size, t=dtype: [torch.randn(s, s, dtype=getattr(torch, t)) for _ in range(2)], torch.mm) for dtype in ("bfloat16", "float16") for size in (512, 1024)),
        *(made(f"linear, {rows} × 1024 to 4096, bfloat16", lambda r=rows: (torch.randn(r, 1024).bfloat16(), torch.randn(4096, 1024).bfloat16()), F.linear) for rows in (1, 8, 64)),
        ("photo.develop 427×640", lambda: _photo(427, 640)),
        ("photo.develop 1080×1920", lambda: _photo(1080, 1920)),
    ]
