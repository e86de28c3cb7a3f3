"""``python -m tests.bench.numpy_peers.serve WAY THREADS``: a process that runs the programs in one way, and answers each line of its input.

``load NAME`` compiles the program for its full arguments and says how long that took and how far the results are from plain NumPy's;
``time`` says the milliseconds of each of some calls, by the clock and of the processors; ``stats`` says how Tenon runs the program.
"""
from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from tests.bench.numpy_programs import Program, all_programs

SHORTEST_MS, MOST_CALLS = 20.0, 20  # of one answer to `time`
SETTLING_ROUNDS = 6


class Missing(Exception):
    """The peer cannot express a program; says why."""


def peers_own(peer: str, program: Program) -> Callable:
    """The program as users of a peer write it."""
    module = importlib.import_module(f"tests.bench.numpy_peers.by_{peer}.{program.area}")
    if program.name in getattr(module, "MISSING", {}):
        raise Missing(module.MISSING[program.name])
    return getattr(module, program.name)


def prepared(way: str, program: Program) -> tuple[Callable, tuple]:
    """What to call, and with what."""
    arguments = program.make(program.size)
    if way == "numpy":
        return program.fn, arguments
    if way == "numba":
        return peers_own(way, program), arguments
    if way == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        function = peers_own(way, program)
        return lambda *given: jax.block_until_ready(function(*given)), jax.device_put(arguments)
    import tenon

    tenon.reset()
    return tenon.compile(program.fn), arguments


def as_arrays(result: object) -> list[np.ndarray]:
    return [np.asarray(one) for one in (result if isinstance(result, tuple) else (result,))]


def difference(got: object, want: object) -> dict:
    """The largest error of floats, relative to the largest of them; how many integers differ."""
    error, unlike = 0.0, 0
    for mine, judge in zip(as_arrays(got), as_arrays(want), strict=True):
        if mine.shape != judge.shape:
            raise ValueError(f"a result is {mine.shape}, NumPy's is {judge.shape}")
        if judge.dtype.kind == "f":
            error = max(error, float(np.abs(mine - judge).max() / max(np.abs(judge).max(), 1e-300)))
        else:
            unlike += int((mine != judge).sum())
    return {"error": error, "unlike": unlike}


def elapsed_ms(function: Callable, arguments: tuple) -> tuple[float, float]:
    """Of a call, by the clock, and of processors on all threads: the second is what other processes take nothing from."""
    clock, used = time.perf_counter(), time.process_time()
    function(*arguments)
    return (time.perf_counter() - clock) * 1e3, (time.process_time() - used) * 1e3


class Server:
    """One way of running programs, one program at a time."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.programs = all_programs()
        self.function: Callable
        self.arguments: tuple

    def load(self, name: str) -> dict:
        program = self.programs[name]
        try:
            self.function, self.arguments = prepared(self.way, program)
            first, _ = elapsed_ms(self.function, self.arguments)
            if self.way == "tenon":
                self.settle()
            return {"compile_ms": first} | difference(self.function(*self.arguments), program.fn(*program.make(program.size)))
        except Missing as why:
            return {"missing": str(why)}
        except Exception as error:  # a program that one way cannot run is a row of the table
            return {"missing": f"{type(error).__name__}: {error}"[:200]}

    def settle(self) -> None:
        """Time for better code to come from the background."""
        for _ in range(SETTLING_ROUNDS):
            time.sleep(0.5)
            self.function(*self.arguments)

    def time(self) -> list[tuple[float, float]]:
        found: list[tuple[float, float]] = []
        while sum(clock for clock, _ in found) < SHORTEST_MS and len(found) < MOST_CALLS:
            found.append(elapsed_ms(self.function, self.arguments))
        return found

    def stats(self) -> dict:
        """Of one more call: how it went, and its place on the clock of traces, in microseconds."""
        import tenon

        before = tenon.stats()["eager_fallbacks"]
        start = time.perf_counter_ns() / 1e3
        self.function(*self.arguments)
        called = [start, time.perf_counter_ns() / 1e3]
        stats = tenon.stats()
        known = {key: stats[key] for key in ("graphs", "graph_breaks", "recompiles", "opaque_nodes")}
        return known | {"fell_back": stats["eager_fallbacks"] > before, "called": called}


def main() -> None:
    """Serves until the input ends."""
    way, threads = sys.argv[1], int(sys.argv[2])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    warnings.simplefilter("ignore")
    server = Server(way)
    for line in sys.stdin:
        command, *words = line.split()
        print(json.dumps(getattr(server, command)(*words)), flush=True)


if __name__ == "__main__":
    main()
