"""``python -m tests.bench.compile_times [--only WORD] [--repeats N]``: how long capturing and compiling takes with nothing on disk: each
workload as the first compile of a process, right after the import, and one kernel of twenty pointwise operations as the second. Wall
milliseconds, the least of the repeats; what runs afterwards is not in them."""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

TWENTY = "20 pointwise operations, second compile"


def _twenty_operations(x, y):
    import torch

    a = x * y
    b = torch.relu(a + x - y) * 0.5 + 1
    c = torch.minimum(torch.maximum(torch.abs(b), x), y * 3) / 2
    d = torch.sqrt(torch.abs(c * a - b)) + c
    return torch.clamp(d * b - a, -5, 5) + c


def one_compile(name: str) -> dict[str, float]:
    """In the process that is measured: milliseconds by phase."""
    import torch

    from tests.bench.workloads import all_workloads

    if name == TWENTY:
        fn, args = _twenty_operations, (torch.randn(300, 500), torch.randn(300, 500))
    else:
        work = dict(all_workloads())[name]()
        fn, args = work.fn, work.args
    import tenon

    with torch.no_grad():
        if name == TWENTY:
            tenon.compile(lambda x: torch.relu(x + 1) * 2)(args[0])
        found = tenon.explain(fn)(*args)
    assert found.graph_break_count == 0
    return {"operations": found.op_count, **{phase: seconds * 1e3 for phase, seconds in found.compile_times.items()}}


def _in_new_process(name: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-m", "tests.bench.compile_times", "--name", name], env={**os.environ, "TENON_CACHE": "0"}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def measure(only: str = "", repeats: int = 3) -> dict[str, dict[str, float]]:
    """By workload: milliseconds of capture and compile, of the repeat in which their sum was least."""
    from tests.bench.workloads import all_workloads

    names = [name for name, _ in all_workloads() if "4096" in name or "256²" in name] + [TWENTY]
    return {name: min((_in_new_process(name) for _ in range(repeats)), key=lambda row: row["capture"] + row["compile"]) for name in names if only in name}


def main() -> None:
    """Prints a row a workload, or one measurement as JSON for the process that asks."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.compile_times", description=__doc__)
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.name:
        return print(json.dumps(one_compile(options.name)))
    for name, row in measure(options.only, options.repeats).items():
        print(f"{name:42} {row['capture'] + row['compile']:7.2f} ms: capture {row['capture']:.2f}, compile {row['compile']:.2f}")


if __name__ == "__main__":
    main()
