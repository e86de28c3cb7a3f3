"""Times several ways of running one program, interleaved, so that a machine that drifts drifts for all of them."""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np


def first_call_ms(fn: Callable, args: tuple) -> float:
    """Milliseconds of one call: for a compiled function that has not run, the compile."""
    start = time.perf_counter()
    fn(*args)
    return (time.perf_counter() - start) * 1e3


def interleaved_ms(ways: dict[str, Callable], args: tuple, seconds: float) -> dict[str, float]:
    """Median milliseconds a call of each way, called in turn for about `seconds` in all, in blocks that last at least 0.2 ms."""
    return {name: statistics.median(values) for name, values in interleaved_blocks(ways, args, seconds).items()}


def interleaved_blocks(ways: dict[str, Callable], args: tuple, seconds: float, least: int = 5) -> dict[str, list[float]]:
    """Milliseconds a call of each way, a figure a block, of which there are at least so many."""
    blocks = {name: _block_length(fn, args) for name, fn in ways.items()}
    samples: dict[str, list[float]] = {name: [] for name in ways}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(samples.values()))) < least:
        for name, fn in ways.items():
            start = time.perf_counter()
            for _ in range(blocks[name]):
                fn(*args)
            samples[name].append((time.perf_counter() - start) * 1e3 / blocks[name])
    return samples


def _block_length(fn: Callable, args: tuple) -> int:
    fn(*args)
    return max(1, int(0.2 / max(first_call_ms(fn, args), 1e-4)))


def largest_error(result, judge) -> float:
    """Largest absolute difference from the float64 result, relative to the largest magnitude of that result."""
    got, want = np.asarray(result, dtype=np.float64), np.asarray(judge, dtype=np.float64)
    return float(np.max(np.abs(got - want)) / max(np.max(np.abs(want)), 1e-300)) if want.size else 0.0


def in_float64(fn: Callable) -> Callable:
    """The same NumPy function with float32 read as float64."""

    def run(*args):
        namespace = dict(fn.__globals__)
        wide = type("numpy in float64", (), {"__getattr__": lambda _, name: np.float64 if name == "float32" else getattr(np, name)})()
        namespace["np"] = wide
        for name, value in list(namespace.items()):
            if callable(value) and getattr(value, "__globals__", None) is fn.__globals__:
                namespace[name] = type(fn)(value.__code__, namespace, name, value.__defaults__, value.__closure__)
        return namespace[fn.__name__](*args)

    return run
