"""``python -m tests.bench.busy [--beside N] [--rounds N]``: a NumPy program of small operations beside busy processes, in turns.

65 statements on arrays of 200 x 200 doubles: compiled, on one thread and on all, and by NumPy.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

import tenon

SIDE, CALLS = 200, 40
WAYS = {"one thread": {"TENON_THREADS": "1"}, "all threads": {}, "numpy": {"TENON_COMPILE": "0"}}


def program(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Thirteen rounds of five statements."""
    for _ in range(13):
        a = np.sin(a) * 0.5
        b = b + a * 0.1
        a = np.where(b > 0.2, a, b)
        b = np.sqrt(np.abs(b) + 1)
        a = a - b * 0.01
    return a, b


def serve() -> None:
    """Answers each line of its input with the seconds of CALLS calls."""
    a = np.random.default_rng(0).random((SIDE, SIDE))
    b = a.T.copy()
    run = program if os.environ.get("TENON_COMPILE") == "0" else tenon.compile(program)
    for _ in range(3):  # until the better code has come
        for _ in range(CALLS):
            run(a, b)
        time.sleep(0.3)
    print("ready", flush=True)
    for _ in sys.stdin:
        seconds = []
        for _ in range(CALLS):
            start = time.perf_counter()
            run(a, b)
            seconds.append(time.perf_counter() - start)
        print(json.dumps(seconds), flush=True)


@contextlib.contextmanager
def processes(count: int) -> Iterator[None]:
    """So many that never wait."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def measured(beside: int, rounds: int) -> dict[str, list[float]]:
    """Seconds a call, by way, from the fastest on."""
    with processes(beside), contextlib.ExitStack() as stack:
        servers = {}
        for way, environment in WAYS.items():
            server = subprocess.Popen([sys.executable, "-m", "tests.bench.busy", "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | environment)
            stack.callback(server.kill)
            assert server.stdout is not None and server.stdout.readline() == "ready\n"
            servers[way] = server
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, server in servers.items():
                assert server.stdin is not None and server.stdout is not None
                server.stdin.write("\n")
                server.stdin.flush()
                times[way] += json.loads(server.stdout.readline())
    return {way: sorted(seconds) for way, seconds in times.items()}


def main() -> None:
    """Prints median and 95th percentile of each way."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.busy", description=__doc__)
    parser.add_argument("--beside", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    for way, seconds in measured(options.beside, options.rounds).items():
        print(f"{way}: median {1e3 * seconds[len(seconds) // 2]:.3f} ms, 95 % {1e3 * seconds[len(seconds) * 95 // 100]:.3f} ms")


if __name__ == "__main__":
    main()
