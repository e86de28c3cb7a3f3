"""``python -m tests.bench [--only WORD] [--seconds S] [--json FILE] [--no-peer]``: a table of ratios, and JSON."""
from __future__ import annotations

import argparse
import json
import pathlib

import torch
from rich.console import Console
from rich.table import Table

import tenon
from demo import measure
from tests.bench import crossing, workloads


def run_workload(work: workloads.Workload, seconds: float, peer: bool) -> dict:
    """Measures one workload; every figure is of this process."""
    tenon.reset()
    ours = tenon.compile(work.fn)
    row: dict = {"name": work.name, "tenon_compile_ms": measure.first_call_ms(ours, work.args)}
    ways = {"eager": work.fn, "tenon": ours}
    if peer and work.library == "torch":
        torch.compiler.reset()
        ways["torch.compile"] = torch.compile(work.fn)
        row["torch_compile_ms"] = measure.first_call_ms(ways["torch.compile"], work.args)
    row["ms"] = measure.interleaved_ms(ways, work.args, seconds)
    judge = work.judge(*work.args)
    row["error"] = {name: measure.largest_error(fn(*work.args), judge) for name, fn in ways.items()}
    stats = tenon.stats()
    row["fallbacks"] = stats["eager_fallbacks"]
    row["graph_breaks"] = stats["graph_breaks"]
    row["reference_share"] = reference_share()
    return row


def reference_share() -> dict:
    """The share of nodes and of run time that the reference backend had since the last reset."""
    backends = tenon.stats()["backends"]
    nodes, time = sum(b["nodes"] for b in backends.values()), sum(b["run_ms"] for b in backends.values())
    mine = backends.get("reference", {"nodes": 0, "run_ms": 0.0})
    return {"nodes": mine["nodes"] / max(nodes, 1), "time": mine["run_ms"] / max(time, 1e-12)}


def table_of(rows: list[dict]) -> Table:
    """The rows as a table: times in ms, ratios above 1 mean that Tenon is faster."""
    table = Table(title="Tenon against eager and torch.compile, medians of interleaved calls")
    for title in ("workload", "compile ms", "peer compile ms", "eager ms", "peer ms", "tenon ms", "eager ÷ tenon", "peer ÷ tenon", "error (eager)", "on reference"):
        table.add_column(title, justify="left" if title == "workload" else "right")
    for row in rows:
        ms, peer = row["ms"], row["ms"].get("torch.compile")
        share = row["reference_share"]
        table.add_row(
            row["name"] + (" FELL BACK" if row["fallbacks"] else ""),
            f"{row['tenon_compile_ms']:.1f}",
            f"{row['torch_compile_ms']:.0f}" if peer else "–",
            f"{ms['eager']:.4g}",
            f"{peer:.4g}" if peer else "–",
            f"{ms['tenon']:.4g}",
            f"{ms['eager'] / ms['tenon']:.2f}",
            f"{peer / ms['tenon']:.2f}" if peer else "–",
            f"{row['error']['tenon']:.1e} ({row['error']['eager']:.1e})",
            f"{share['nodes']:.0%} nodes, {share['time']:.0%} time",
        )
    return table


def main() -> None:
    """Runs the benchmarks that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", default="", help="only workloads whose name contains this")
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time a workload (default 2)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    parser.add_argument("--no-peer", action="store_true", help="leave torch.compile out (it compiles for seconds)")
    options = parser.parse_args()

    console = Console(width=180)
    rows = []
    with torch.no_grad():
        for work in workloads.all_workloads():
            if options.only in work.name:
                rows.append(run_workload(work, options.seconds, not options.no_peer))
    console.print(table_of(rows))
    boundary = crossing.measure()
    console.print(boundary)
    if options.json:
        options.json.write_text(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), "workloads": rows, "crossing": boundary}, indent=1))


if __name__ == "__main__":
    main()
