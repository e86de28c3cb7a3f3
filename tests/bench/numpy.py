"""``python -m tests.bench.numpy [--only WORD] [--rounds N] [--threads N] [--peers PYTHON] [--json FILE]``: programs of NumPy's users beside its compilers.

NumPy, Tenon on one thread and on all, Numba and JAX are a process each, asked in turns; compiling is apart. The peers have an environment of their
own, whose interpreter `--peers` names: ``python -m venv build/peers && build/peers/bin/pip install numba jax``. Without it NumPy and Tenon are alone.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from tests.bench.numpy_programs import all_programs

OURS = ("tenon, 1 thread", "tenon")
PEERS = ("numba", "jax")
KNOWN_ERROR = 1e-9  # what sums in another order may differ by


class Asked:
    """A process that serves one way, see ``numpy_peers/serve.py``."""

    def __init__(self, interpreter: str, way: str, threads: int, environment: dict[str, str] | None = None) -> None:
        command = [interpreter, "-m", "tests.bench.numpy_peers.serve", way.partition(",")[0], str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {"TENON_CACHE": "0"} | (environment or {}))

    def ask(self, line: str):
        assert self.process.stdin is not None and self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process for {' '.join(map(str, self.process.args))} has ended")
        return json.loads(answer)

    def end(self, patience: float = 20) -> None:
        """Waits until it has written what it writes at its end. Peers may take minutes to put their code away."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def processes(threads: int, peers: str | None) -> Iterator[dict[str, Asked]]:
    """One for each way."""
    served = {"numpy": Asked(sys.executable, "numpy", threads)}
    served |= {way: Asked(sys.executable, way, threads, {"TENON_THREADS": "1" if way != "tenon" else str(threads)}) for way in OURS}
    if peers:
        served |= {way: Asked(peers, way, threads, {"NUMBA_NUM_THREADS": str(threads)}) for way in PEERS}
    try:
        yield served
    finally:
        for one in served.values():
            one.end()


def measured(name: str, served: dict[str, Asked], rounds: int) -> dict:
    """One program in all ways: milliseconds by the clock, and least of processors; compiles, errors, and what a peer lacks."""
    row: dict = {"name": name, "loaded": {way: one.ask(f"load {name}") for way, one in served.items()}}
    running = {way: one for way, one in served.items() if "missing" not in row["loaded"][way]}
    samples: dict[str, list[tuple[float, float]]] = {way: [] for way in running}
    for _ in range(rounds):
        for way, one in running.items():
            samples[way] += one.ask("time")
    row["median_ms"] = {way: statistics.median(clock for clock, _ in found) for way, found in samples.items()}
    row["min_ms"] = {way: min(clock for clock, _ in found) for way, found in samples.items()}
    row["cpu_ms"] = {way: min(used for _, used in found) for way, found in samples.items()}
    row["samples"] = {way: len(found) for way, found in samples.items()}
    row["load_average"] = os.getloadavg()[0]
    return row


def spent_in(names: list[str], threads: int, calls: int = 5) -> dict[str, dict]:
    """How Tenon runs each program, with the milliseconds of its quickest call: all, in kernels, and in functions of NumPy that are called as they are."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "trace.json")
        traced = Asked(sys.executable, "tenon", threads, {"TENON_TRACE": str(path), "TENON_THREADS": str(threads)})
        said = {name: [traced.ask(f"load {name}"), *(traced.ask("stats") for _ in range(calls))][1:] for name in names}
        traced.end()
        ranges = [(e["ts"], e["dur"], e["name"]) for e in json.loads(path.read_text()) if e.get("ph") == "X"]
    found = {}
    for name, answers in said.items():
        best = min(answers, key=lambda answer: answer["called"][1] - answer["called"][0])
        start, end = best.pop("called")
        inside = [(length, what) for at, length, what in ranges if start <= at <= end]
        best["ms"] = (end - start) / 1e3
        best["kernels_ms"] = sum(length for length, what in inside if what.startswith("llvm: ")) / 1e3
        best["opaque_ms"] = sum(length for length, what in inside if what.startswith("python: ")) / 1e3
        found[name] = best
    return found


def ratio(row: dict, other: str, figure: str = "min_ms", way: str = "tenon") -> float:
    """How many times Tenon's time the other way takes."""
    return row[figure][other] / row[figure][way] if other in row[figure] and way in row[figure] else math.nan


def mean(rows: list[dict], other: str, figure: str, way: str) -> str:
    """The geometric mean of ratios, the least of them, how many there are."""
    ratios = {row["name"]: value for row in rows if not math.isnan(value := ratio(row, other, figure, way))}
    if not ratios:
        return ""
    least = min(ratios, key=lambda name: ratios[name])
    return f"{other} ÷ {way}, {figure[:-3]}: geometric mean {statistics.geometric_mean(ratios.values()):.2f}, least {ratios[least]:.2f} ({least}), of {len(ratios)}"


def notes_of(row: dict) -> str:
    """Results that are not NumPy's."""
    loaded = {way: said for way, said in row["loaded"].items() if "missing" not in said}
    notes = [f"{way}: error {said['error']:.0e}" for way, said in loaded.items() if said["error"] > KNOWN_ERROR]
    notes += [f"{way}: {said['unlike']} integers differ" for way, said in loaded.items() if said["unlike"]]
    return "; ".join(notes)


def table_of(rows: list[dict]) -> Table:
    """Least times in ms, ratios of them (above 1 Tenon is faster), and how Tenon runs the program."""
    table = Table(title="NumPy's programs: least ms of interleaved calls; ratios of these, and of medians in brackets")
    ways = ("numpy", *OURS, *PEERS)
    titles = ("program", *ways, *(f"{other} ÷ tenon" for other in ("numpy", *PEERS)), "numpy ÷ 1 thread, CPU", "compile ms: tenon, numba, jax", "in kernels, opaque", "graphs, breaks", "notes")
    for title in titles:
        table.add_column(title, justify="left" if title in ("program", "notes") else "right")
    for row in rows:
        times = [f"{row['min_ms'][way]:.3g}" if way in row["min_ms"] else "–" for way in ways]
        ratios = [f"{ratio(row, other):.2f} ({ratio(row, other, 'median_ms'):.2f})" if other in row["min_ms"] else "–" for other in ("numpy", *PEERS)]
        compiles = [row["loaded"].get(way, {}).get("compile_ms") for way in ("tenon", *PEERS)]
        run = row["run"]
        spent = f"{run['kernels_ms'] / run['ms']:.0%}, {run['opaque_ms'] / run['ms']:.0%} of {run['ms']:.3g}"
        went = f"{run['graphs']}, {run['graph_breaks']}" + (", eager" if run["fell_back"] else "")
        ratios.append(f"{ratio(row, 'numpy', 'cpu_ms', OURS[0]):.2f}")
        table.add_row(row["name"], *times, *ratios, ", ".join("–" if ms is None else f"{ms:.0f}" for ms in compiles), spent, went, notes_of(row))
    return table


def processor() -> str:
    """Its model, as Linux says it."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor")


def summary(figures: dict) -> list[str]:
    """What is said below the table."""
    rows = figures["programs"]
    lines = [f"{figures['processor']}, {figures['threads']} threads, load {min(r['load_average'] for r in rows):.1f} to {max(r['load_average'] for r in rows):.1f}"]
    lines += filter(None, (mean(rows, other, figure, "tenon") for other in ("numpy", *PEERS) for figure in ("min_ms", "median_ms", "cpu_ms")))
    lines += filter(None, (mean(rows, "numpy", figure, OURS[0]) for figure in ("min_ms", "cpu_ms")))
    lines += [f"{way} has no {row['name']}: {said['missing']}" for row in rows for way, said in row["loaded"].items() if "missing" in said]
    return lines


def main() -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.numpy", description=__doc__)
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--rounds", type=int, default=9, help="turns of every way (default 9)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="processors that each way may use (default all)")
    parser.add_argument("--peers", help="the interpreter of an environment with numba and jax")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    names = [name for name in all_programs() if options.only in name]
    if not names:
        parser.error(f"no program's name contains {options.only}; there are {', '.join(all_programs())}")
    figures: dict = {"processor": processor(), "threads": options.threads}
    with processes(options.threads, options.peers) as served:
        figures["programs"] = [measured(name, served, options.rounds) for name in names]
    for name, run in spent_in(names, options.threads).items():
        next(row for row in figures["programs"] if row["name"] == name)["run"] = run
    console = Console(width=240)
    console.print(table_of(figures["programs"]))
    for line in summary(figures):
        console.print(line, highlight=False)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
