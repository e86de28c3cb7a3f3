"""``python -m tests.bench.first_call [--only WORD] [--repeats N]``: the first call of each network in a process of its own: eager, Tenon
with an empty cache on disk, and Tenon from what that process left there. Milliseconds of wall time and of processor time, the least of
the repeats, and what the cache counted."""
from __future__ import annotations

import argparse
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def one_call(name: str, way: str) -> dict:
    """In the process that is measured."""
    import torch

    from tests.bench import networks, workloads

    work = dict([*workloads.all_workloads(), *networks.networks()])[name]()
    if way != "eager":
        import tenon
    fn = work.fn if way == "eager" else work.compiled()
    gc.collect()  # else what the imports left due, 65 ms over all objects of torch, falls on whoever allocates next
    with torch.no_grad():
        wall, cpu = time.perf_counter(), time.process_time()
        fn(*work.args)
        row = {"wall_ms": (time.perf_counter() - wall) * 1e3, "cpu_ms": (time.process_time() - cpu) * 1e3}
    if way != "eager":
        stats = tenon.stats()
        row |= {"cache": stats["host"]["cache"], "compile_ms": sum(b["compile_ms"] for b in stats["backends"].values())}
    return row


def in_new_process(name: str, way: str, cache: str) -> dict:
    """Runs `one_call` with its cache in the folder."""
    done = subprocess.run([sys.executable, "-m", "tests.bench.first_call", "--name", name, "--way", way], env={**os.environ, "TENON_CACHE_DIR": cache},
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def first_calls(name: str, repeats: int) -> dict[str, dict]:
    """The ways of one workload, taken in turn."""
    rows: dict[str, list[dict]] = {"eager": [], "cold": [], "warm": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            for way, taken in rows.items():
                taken.append(in_new_process(name, way, cache))
    return {way: min(taken, key=lambda row: row["wall_ms"]) | {"cpu_ms": min(row["cpu_ms"] for row in taken)} for way, taken in rows.items()}


def main() -> None:
    """Prints a table, or one row of it as JSON for the process that asks."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.first_call", description=__doc__)
    parser.add_argument("--only", default="", help="only networks whose name contains this")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--way", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.name:
        return print(json.dumps(one_call(options.name, options.way)))
    from tests.bench import networks

    figures = {}
    for name, _ in networks.networks():
        if options.only not in name:
            continue
        figures[name] = first_calls(name, options.repeats)
        print(name)
        for way, row in figures[name].items():
            extra = f"  compile {row['compile_ms']:.0f} ms, {row['cache']}" if "cache" in row else ""
            print(f"  {way:6} wall {row['wall_ms']:8.1f} ms  cpu {row['cpu_ms']:8.1f} ms{extra}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
