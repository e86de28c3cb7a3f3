"""Random numbers on the card, compiled, against torch's own from the same state, with the state that each leaves: python3 draws.py"""
from __future__ import annotations

import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
from tenon import _philox

import tenon
from judged import D

SIZES = [1, 2, 6, 255, 256, 1000, 4099, 100_000, 270_336, 270_340, 1_081_344, 1_081_348, 3_000_001, 3_000_002, 5_000_000]
FUNCTIONS: dict[str, Callable] = {
    "dropout": lambda x: F.dropout(x, 0.1),
    "two dropouts": lambda x: F.dropout(F.dropout(x, 0.5) + 1, 0.25),
    "rand_like": torch.rand_like,
    "rand": lambda x: torch.rand(x.shape, device=x.device, dtype=x.dtype) + x,
}


def from_one_state(fn: Callable, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    torch.cuda.manual_seed(2**63 + 5)
    torch.rand(3, device=D)
    return fn(x), torch.cuda.get_rng_state()


def captured(fn: Callable, x: torch.Tensor) -> list[torch.Tensor]:
    """What a graph of the program's gives, launched twice."""
    torch.cuda.manual_seed(11)
    fn(x)
    graph, results = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        result = fn(x)
    for _ in range(2):
        graph.replay()
        results.append(result.clone())
    return results


def main() -> int:
    failed = 0
    names = sorted(name for name in ("rand", "rand_like", "dropout", "native_dropout") if _philox.function_on(torch.device(D), name))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; drawn by kernels: {', '.join(names)}")
    for name, fn in FUNCTIONS.items():
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            compiled, unlike = tenon.compile(fn, dynamic=False), []
            for size in SIZES:
                x = torch.ones(size, device=D, dtype=dtype)
                want, left = from_one_state(fn, x)
                got, state = from_one_state(compiled, x)
                if not torch.equal(got, want) or not torch.equal(state, left):
                    unlike.append(size)
            failed += bool(unlike)
            print(f"{'WRONG' if unlike else 'ok'}    {name} {dtype}: {unlike or f'{len(SIZES)} sizes'}")
    x = torch.ones(5000, device=D)
    fn = FUNCTIONS["dropout"]
    same = all(torch.equal(a, b) for a, b in zip(captured(fn, x), captured(tenon.compile(fn), x)))
    failed += not same
    print(f"{'ok' if same else 'WRONG'}    dropout in a graph of the program's")
    return failed


if __name__ == "__main__":
    sys.exit(main())
