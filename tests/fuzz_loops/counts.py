"""What the plans of a loop do, by its iterations: that work grows with them alone, and nothing is alive for longer than node by node."""
from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import tenon
from tests.fuzz_loops.program import ITERATIONS, Loop

PLAN = re.compile(r"the plan: (\d+) kernels of (\d+) operations, the longest of (\d+); at all points (\d+) operations, (\d+) loads, (\d+) stores; (\d+) bytes alive at once, (\d+) if")

OPERATIONS_OF_AN_ACCESS = 6  # as plans count them: kCheaperThanLoad of llvm/decisions/cpu_machine.cpp


@dataclass(frozen=True)
class Tally:
    """Of all plans of a call."""

    kernels: int
    length: int
    longest: int
    operations: int
    loads: int
    stores: int
    live_bytes: int
    apart_bytes: int  # where no value is written over another

    @property
    def accesses(self) -> int:
        return self.loads + self.stores

    @property
    def work(self) -> int:
        """In operations, of which a processor does some in the time of an access."""
        return self.operations + OPERATIONS_OF_AN_ACCESS * self.accesses


@contextmanager
def logged() -> Iterator[list[str]]:
    """The lines that come to stderr meanwhile, once it is over."""
    lines: list[str] = []
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            lines += file.read().decode().splitlines()


def tally(loop: Loop, iterations: int, fuse: bool) -> tuple[Tally, list[Any]]:
    """Counts of the first call's plans, and its results."""
    compiled = tenon.compile(lambda *inputs: loop.run(iterations, inputs), options={"llvm": {"fuse": fuse}})
    tenon.set_logs(fusion=True)
    try:
        with logged() as lines:
            results = compiled(*loop.inputs())
    finally:
        tenon.set_logs()
    plans = [tuple(map(int, found.groups())) for line in lines if (found := PLAN.search(line))]
    kernels, length, longest, operations, loads, stores, live, separate = zip(*plans or [(0,) * 8])  # no plan: the loop leaves its inputs as they are
    return Tally(sum(kernels), sum(length), max(longest), sum(operations), sum(loads), sum(stores), max(live), max(separate)), list(results)


def objections(fused: dict[int, Tally], apart: dict[int, Tally]) -> Iterator[str]:
    """Work a step grows by no more than some start and end effects, which are small beside what nodes do one by one; it is no more than that of one kernel a
    node, but for what is cheap to compute again."""
    few, half, most = (fused[n] for n in ITERATIONS[-3:])
    for name, slack in (("kernels", 4), ("length", 200), ("operations", 0.1 * apart[ITERATIONS[-1]].operations), ("accesses", 0.1 * apart[ITERATIONS[-1]].accesses)):
        expected = getattr(half, name) + 2 * (getattr(half, name) - getattr(few, name))
        if getattr(most, name) > 1.15 * expected + slack:
            yield f"{getattr(most, name)} {name} in {ITERATIONS[-1]} steps where {getattr(few, name)} in {ITERATIONS[-3]} and {getattr(half, name)} in {ITERATIONS[-2]} let expect {expected}"
    for n in ITERATIONS:
        if fused[n].live_bytes > 1.05 * apart[n].apart_bytes:
            yield f"{fused[n].live_bytes} bytes alive in {n} steps, {apart[n].apart_bytes} node by node"
        if fused[n].accesses > apart[n].accesses:
            yield f"{fused[n].accesses} accesses in {n} steps, {apart[n].accesses} node by node"
        if fused[n].operations > 4 * apart[n].operations and fused[n].work > apart[n].work:
            yield f"{fused[n].operations} operations in {n} steps, {apart[n].operations} node by node"
        if fused[n].longest > 700:
            yield f"a kernel of {fused[n].longest} operations"


def run(loop: Loop) -> str | None:
    fused, apart = {}, {}
    for n in ITERATIONS:
        fused[n], got = tally(loop, n, True)
        apart[n], _ = tally(loop, n, False)
        want = loop.run(n, loop.inputs())
        tolerance = 1e-3 if loop.dtype == "float32" else 1e-9
        for i, (a, b) in enumerate(zip(got, want)):
            if np.isfinite(np.asarray(b)).all() and not np.allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance):
                return f"state {i} after {n} steps: by {np.abs(np.asarray(a) - np.asarray(b)).max():.3g}"
    return "; ".join(objections(fused, apart)) or None
