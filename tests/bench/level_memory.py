"""``python -m tests.bench.level_memory [--steps N] [--from N]``: what steps of a small network leave in resident memory, from one of the first on.

Ways: the network compiled in an eager loop, and one compiled function that is the whole step.
"""
from __future__ import annotations

import argparse
import gc
import os

import torch
from torch import nn

import tenon

WAYS = ("network", "whole step")


def resident_kilobytes() -> int:
    """Of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def growth_kilobytes(way: str, first: int, steps: int) -> int:
    """How much more is resident after `steps` steps than after `first` of them."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(net.parameters())
    forward = tenon.compile(net) if way == "network" else net

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = tenon.compile(step) if way == "whole step" else step
    x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))
    before = 0
    for at in range(steps):
        if at == first:
            gc.collect()
            before = resident_kilobytes()
        run(x, y)
    gc.collect()
    return resident_kilobytes() - before


def main() -> None:
    """Prints the growth of each way."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.level_memory", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--from", type=int, default=100, dest="first")
    options = parser.parse_args()
    for way in WAYS:
        print(f"{way}: {growth_kilobytes(way, options.first, options.steps)} KiB from step {options.first} to {options.steps}")


if __name__ == "__main__":
    main()
