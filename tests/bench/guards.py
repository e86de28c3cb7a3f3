"""What the guards of a call cost when nothing has changed, and what a capture costs."""
from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

import tenon
from tests.bench.residual import ResNet18
from tests.bench.transformer import GPT2


def _programs() -> dict[str, tuple[Callable[[], nn.Module], tuple[torch.Tensor, ...]]]:
    return {
        "100 Linear(4,4)": (lambda: nn.Sequential(*(nn.Linear(4, 4) for _ in range(100))), (torch.randn(2, 4),)),
        "ResNet-18": (ResNet18, (torch.randn(1, 3, 64, 64),)),
        "GPT-2, 12 layers": (lambda: GPT2(layers=12), (torch.randint(0, 1000, (1, 16)),)),
    }


def _without_compiling(graph: torch.fx.GraphModule, example_inputs: list) -> Callable:
    results = tuple(graph.tenon_graph.forward(*example_inputs))
    return lambda *inputs: results


def _microseconds_of_guards(network: nn.Module, args: tuple, samples: int = 200, repeats: int = 200) -> float:
    """The least of many samples: whatever else runs on the machine only adds."""
    compiled = tenon.compile(network._call_impl, backend=_without_compiling)
    for _ in range(3):
        compiled(*args)
    return 1e6 * min(compiled.guard_seconds(args, repeats) for _ in range(samples))


def _milliseconds_of_capture(network: nn.Module, args: tuple, samples: int = 5) -> float:
    found = []
    for _ in range(samples):
        tenon.reset()
        found.append(1e3 * tenon.explain(network)(*args).compile_times["capture"])
    return min(found)


def measure() -> dict[str, dict[str, float]]:
    """Guards in µs and capture in ms, by program, under ``torch.no_grad()``."""
    rows = {}
    with torch.no_grad():
        for name, (make, args) in _programs().items():
            network = make().eval()
            rows[name] = {"guards_us": round(_microseconds_of_guards(network, args), 2), "capture_ms": round(_milliseconds_of_capture(network, args), 1)}
    return rows


if __name__ == "__main__":
    start = time.perf_counter()
    for program, row in measure().items():
        print(f"{program:20} guards {row['guards_us']:6.2f} us, capture {row['capture_ms']:6.1f} ms")
    print(f"({time.perf_counter() - start:.0f} s)")
