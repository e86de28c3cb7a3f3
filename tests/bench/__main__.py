"""``python -m tests.bench [--only WORD] [--seconds S] [--json FILE] [--no-peer] [--profile [PNG]]``: tables of ratios, and JSON."""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import traceback

import torch
from rich.console import Console
from rich.table import Table

import tenon
from demo import measure
from tests.bench import compile_times, crossing, guards, networks, profile, workloads


def run_workload(work: workloads.Workload, seconds: float, peer: bool) -> dict:
    """Measures one workload; every figure is of this process."""
    tenon.reset()
    ours = work.compiled()
    row: dict = {"name": work.name, "tenon_compile_ms": measure.first_call_ms(ours, work.args)}
    ways = {"eager": work.fn, "tenon": ours}
    if peer and work.library == "torch":
        torch.compiler.reset()
        ways["torch.compile"] = torch.compile(work.fn, options={"freezing": True} if work.frozen else None)
        row["torch_compile_ms"] = measure.first_call_ms(ways["torch.compile"], work.args)
    row["ms"] = measure.interleaved_ms(ways, work.args, seconds)
    judge = work.judge(*work.args)
    wide = (lambda result: result.double()) if work.library == "torch" else (lambda result: result)  # NumPy does not know bfloat16
    row["error"] = {name: measure.largest_error(wide(fn(*work.args)), judge) for name, fn in ways.items()}
    stats = tenon.stats()
    row["fallbacks"] = stats["eager_fallbacks"]
    row["graph_breaks"] = stats["graph_breaks"]
    row["reference_share"] = reference_share()
    row["host_memory"] = stats["host"]
    row["process_peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return row


def reference_share() -> dict:
    """The share of nodes and of run time that other backends than llvm had since the last reset."""
    backends = tenon.stats()["backends"]
    nodes, time = sum(b["nodes"] for b in backends.values()), sum(b["run_ms"] for b in backends.values())
    others = [b for name, b in backends.items() if name != "llvm"]
    return {"nodes": sum(b["nodes"] for b in others) / max(nodes, 1), "time": sum(b["run_ms"] for b in others) / max(time, 1e-12)}


def table_of(rows: list[dict]) -> Table:
    """The rows as a table: times in ms, ratios above 1 mean that Tenon is faster."""
    table = Table(title="Tenon against eager and torch.compile, medians of interleaved calls")
    for title in ("workload", "compile ms", "peer compile ms", "eager ms", "peer ms", "tenon ms", "eager ÷ tenon", "peer ÷ tenon", "error (eager)", "peak MB (node by node)", "not on llvm"):
        table.add_column(title, justify="left" if title == "workload" else "right")
    for row in rows:
        if "failed" in row:
            table.add_row(row["name"], *["–"] * 9, row["failed"])
            continue
        ms, peer = row["ms"], row["ms"].get("torch.compile")
        share = row["reference_share"]
        notes = "".join(f", {row[key]} {word}" for key, word in (("fallbacks", "fallbacks"), ("graph_breaks", "breaks")) if row[key])
        table.add_row(
            row["name"] + notes,
            f"{row['tenon_compile_ms']:.1f}",
            f"{row['torch_compile_ms']:.0f}" if peer else "–",
            f"{ms['eager']:.4g}",
            f"{peer:.4g}" if peer else "–",
            f"{ms['tenon']:.4g}",
            f"{ms['eager'] / ms['tenon']:.2f}",
            f"{peer / ms['tenon']:.2f}" if peer else "–",
            f"{row['error']['tenon']:.1e} ({row['error']['eager']:.1e})",
            f"{row['host_memory']['memory']['peak_bytes'] / 1e6:.1f} ({row['host_memory']['memory']['unfused_peak_bytes'] / 1e6:.1f})",
            f"{share['nodes']:.0%} nodes, {share['time']:.0%} time",
        )
    return table


def measured(name: str, make, options: argparse.Namespace) -> dict:
    """The row of one workload; a failure is a row too."""
    try:
        return run_workload(make(), options.seconds, not options.no_peer)
    except Exception as error:  # one workload that fails must not hide the others
        traceback.print_exc()
        return {"name": name, "failed": f"{type(error).__name__}: {error}"[:80]}


def main() -> None:
    """Runs the benchmarks that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", default="", help="only workloads whose name contains this")
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time a workload (default 2)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    parser.add_argument("--no-peer", action="store_true", help="leave torch.compile out (it compiles for seconds)")
    parser.add_argument("--profile", type=pathlib.Path, nargs="?", const=pathlib.Path("roofline.png"), help="time by kernel, and a roofline picture (default roofline.png)")
    options = parser.parse_args()
    for name, value in (("TENON_CACHE", "0"), ("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")):
        os.environ[name] = value  # compile times are those of a first start; tests.bench.first_call has those of a second

    console = Console(width=190)
    chosen = [(name, make) for name, make in [*workloads.all_workloads(), *networks.networks()] if options.only in name]
    figures: dict = {"torch": torch.__version__, "threads": torch.get_num_threads()}
    with torch.no_grad():
        if options.profile:
            figures["limits"] = limits = profile.machine_limits()
            figures["profiles"] = {}
            for name, make in chosen:
                figures["limits"] = limits = profile.machine_limits(limits)
                text, figures["profiles"][name] = profile.report(make(), limits)
                console.print(text, highlight=False, soft_wrap=True)
            profile.draw_roofline(figures["profiles"], limits, options.profile)
        else:
            figures["workloads"] = [measured(name, make, options) for name, make in chosen]
            console.print(table_of(figures["workloads"]))
            figures["crossing"] = crossing.measure()
            console.print(figures["crossing"])
            if options.only in "compile times":
                figures["compile_times"] = compile_times.measure()
                console.print(figures["compile_times"])
            if options.only in "guards":
                figures["guards"] = guards.measure()
                console.print(figures["guards"])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1, default=str))


if __name__ == "__main__":
    main()
