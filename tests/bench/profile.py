"""Time by kernel against the machine's measured limits, and the roofline picture."""
from __future__ import annotations

import collections
import contextlib
import json
import os
import pathlib
import statistics
import tempfile
import time
from collections.abc import Iterator

import torch

import tenon
from tests.bench.workloads import Workload


CACHED_BYTES = 1 << 20  # what a step needs of memory so that it finds it in a cache


def machine_limits(known: dict[str, float] | None = None) -> dict[str, float]:
    """Measured now, by torch on its threads: GFLOP/s of a product that stays in cache, GB/s of a copy that does not and of one that does.

    Where `known` is better, that stays: whatever else runs on the machine only takes away.
    """
    a, b = torch.randn(768, 768), torch.randn(768, 768)
    flops = min(_seconds(lambda: torch.mm(a, b)) for _ in range(12))
    found = {"gflops": 2 * 768**3 / flops * 1e-9, "gb_s": _copy_gb_s(32 << 20, 6), "cached_gb_s": _copy_gb_s(CACHED_BYTES // 8, 200)}
    return {name: max(value, (known or {}).get(name, 0)) for name, value in found.items()}


def _copy_gb_s(floats: int, repeats: int) -> float:
    source, target = torch.randn(floats), torch.empty(floats)
    return 2 * source.nbytes / min(_seconds(lambda: target.copy_(source)) for _ in range(repeats)) * 1e-9


def _seconds(fn) -> float:
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start


@contextlib.contextmanager
def _captured_stderr() -> Iterator[pathlib.Path]:
    """Everything that is written to file descriptor 2, C++ included, goes to a file."""
    with tempfile.NamedTemporaryFile("w+") as sink:
        saved = os.dup(2)
        os.dup2(sink.fileno(), 2)
        try:
            yield pathlib.Path(sink.name)
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def kernel_times(work: Workload, runs: int = 7) -> list[dict]:
    """The steps of the compiled workload: medians over runs, the longest first."""
    samples: dict[tuple, list[dict]] = collections.defaultdict(list)
    with _captured_stderr() as log:
        tenon.set_logs(kernel_times=True)
        try:
            tenon.reset()
            compiled = work.compiled(settled=True)
            for _ in range(runs):
                compiled(*work.args)
        finally:
            tenon.set_logs()
        for line in log.read_text().splitlines():
            start = line.find('{"bytes"')
            if start >= 0:
                step = json.loads(line[start:])
                samples[step["step"], step["name"], step["bytes"]].append(step)
    rows = [{**found[0], "us": statistics.median(s["us"] for s in found)} for found in samples.values()]
    return sorted(rows, key=lambda row: -row["us"])


def report(work: Workload, limits: dict[str, float], longest: int = 12) -> tuple[str, list[dict]]:
    """A table of the longest steps with GB/s, GFLOP/s and the share of the nearer limit; and all steps."""
    rows = kernel_times(work)
    total = sum(row["us"] for row in rows)
    lines = [f"{work.name}: {len(rows)} steps, {total / 1e3:.3f} ms"]
    for row in rows:
        row["gb_s"], row["gflops"] = row["bytes"] / row["us"] * 1e-3, row["flops"] / row["us"] * 1e-3
        bandwidth = limits["cached_gb_s" if row["bytes"] <= CACHED_BYTES else "gb_s"]
        row["share_of_limit"] = max(row["gb_s"] / bandwidth, row["gflops"] / limits["gflops"] if row["kind"] == "product" else 0)
    for row in rows[:longest]:
        what = row["what"] if len(row["what"]) <= 60 else row["what"][:57] + "..."
        lines.append(f"  {row['us']:9.1f} us {row['us'] / total:6.1%}  {row['gb_s']:7.1f} GB/s {row['gflops']:8.1f} GFLOP/s {row['share_of_limit']:5.0%} of limit  {row['kind']:8} {what}")
    return "\n".join(lines), rows


def draw_roofline(profiles: dict[str, list[dict]], limits: dict[str, float], path: pathlib.Path) -> None:
    """Each step as a point: operations a byte against GFLOP/s; the area is its share of its workload's time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 6.5))
    for key, where, style in (("gb_s", "memory", "-"), ("cached_gb_s", "cache", "--")):
        intensity = [2.0**-6, limits["gflops"] / limits[key], 2.0**11]
        label = f"{limits[key]:.0f} GB/s of {where}, {limits['gflops']:.0f} GFLOP/s measured"
        axes.loglog(intensity, [min(limits["gflops"], limits[key] * x) for x in intensity], style, color="black", label=label)
    for name, rows in profiles.items():
        total = sum(row["us"] for row in rows)
        points = [row for row in rows if row["bytes"] and row["flops"]]
        axes.scatter([r["flops"] / r["bytes"] for r in points], [r["gflops"] for r in points], s=[20 + 400 * r["us"] / total for r in points], alpha=0.5, label=name)
    axes.set(xlabel="operations a byte", ylabel="GFLOP/s", title="Steps against the machine's limits")
    for mark in axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1)).legend_handles[2:]:
        mark.set_sizes([30])
    axes.grid(True, which="both", alpha=0.2)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    pyplot.close(figure)
