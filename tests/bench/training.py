"""``python -m tests.bench.training [--only WORD] [--seconds S] [--json FILE] [--no-peer]``: what a forward and backward pass costs, and a whole step.

Columns of ways: plain execution; the network compiled in an eager loop, by Tenon and by torch.compile; that with ``optimizer.step`` compiled by
itself; and one compiled function that is the whole step. Each way trains a copy of its own.
"""
from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import os
import pathlib
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import tenon
from demo import measure
from tests.bench import residual, transformer


@dataclasses.dataclass
class Task:
    """A network, what it is given, and a loss of what it gives."""

    name: str
    make: Callable[[], nn.Module]
    batch: Callable[[], tuple[torch.Tensor, torch.Tensor]]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))


def _classes(size: tuple[int, ...], classes: int) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    return lambda: (torch.randn(size), torch.randint(0, classes, size[:1]))


def _tokens(batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, 8192, (batch, length)), torch.randint(0, 8192, (batch, length))


def tasks() -> list[Task]:
    """The networks of the table."""
    entropy = nn.functional.cross_entropy
    gpt2 = Task("gpt2 6x384 b4 s128", lambda: transformer.GPT2(vocabulary=8192), lambda: _tokens(4, 128), lambda y, t: entropy(y.flatten(0, 1), t.flatten()))
    return [
        Task("mlp 6-8-8-3 b5", _mlp, _classes((5, 6), 3), entropy),
        Task("resnet18 b16 3x128x128", residual.ResNet18, _classes((16, 3, 128, 128), 1000), entropy),
        Task("densenet121 b16 3x128x128", residual.DenseNet121, _classes((16, 3, 128, 128), 1000), entropy),
        gpt2,
    ]


class Way:
    """One copy of a network and its optimizer. `wrap` compiles the network, `wrap_step` the optimizer's step, `wrap_whole` a function of all."""

    def __init__(self, task: Task, network: nn.Module, wrap: Callable = lambda f: f, wrap_step: Callable = lambda f: f, wrap_whole: Callable = lambda f: f) -> None:
        network = copy.deepcopy(network)
        optimizer = torch.optim.Adam(network.parameters())
        forward, update = wrap(network), wrap_step(optimizer.step)

        def backward(data: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad(True)
            loss = task.loss(forward(data), target)
            loss.backward()
            return loss

        def step(data: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            loss = backward(data, target)
            update()
            return loss

        self.network, self.backward, self.step = network, backward, wrap_whole(step)


def gradient_error(task: Task, network: nn.Module, batch: tuple[torch.Tensor, torch.Tensor], wrap: Callable) -> float:
    """The norm of all gradients' differences from those in float64, relative to the norm of these."""
    found = []
    for way, data in ((Way(task, copy.deepcopy(network).double()), batch[0].double() if batch[0].is_floating_point() else batch[0]), (Way(task, network, wrap), batch[0])):
        way.backward(data, batch[1])
        found.append(torch.cat([p.grad.double().flatten() for p in way.network.parameters()]))
    return ((found[1] - found[0]).norm() / found[0].norm()).item()


def run_task(task: Task, seconds: float, peer: bool) -> dict:
    """Medians in ms of both passes, and of whole steps, of all ways, interleaved."""
    torch.manual_seed(0)
    tenon.reset()
    network, batch = task.make(), task.batch()
    ways = {
        "eager": Way(task, network),
        "tenon": Way(task, network, tenon.compile),
        "tenon, step apart": Way(task, network, tenon.compile, tenon.compile),
        "tenon, whole": Way(task, network, wrap_whole=tenon.compile),
    }
    if peer:
        torch.compiler.reset()
        ways["torch.compile"] = Way(task, network, torch.compile)
    row: dict = {"name": task.name, "cold_ms": {}}
    for name, way in ways.items():
        row["cold_ms"][name] = measure.first_call_ms(way.step, batch) + measure.first_call_ms(way.step, batch)
    both = {name: way.backward for name, way in ways.items() if name in ("eager", "tenon", "torch.compile")}
    row["passes_ms"] = measure.interleaved_ms(both, batch, seconds)
    row["step_ms"] = measure.interleaved_ms({name: way.step for name, way in ways.items()}, batch, seconds)
    stats = tenon.stats()
    row |= {key: stats[key] for key in ("graphs", "graph_breaks", "eager_fallbacks", "recompiles")}
    row["error"] = {name: gradient_error(task, network, batch, wrap) for name, wrap in (("eager", lambda f: f), ("tenon", tenon.compile))}
    return row


def table_of(rows: list[dict]) -> Table:
    """The rows as a table: ms, and as shares of eager's."""
    table = Table(title="Training: medians of interleaved calls, ms (share of eager)")
    titles = ("network", "", "eager", "torch.compile", "tenon", "tenon, step apart", "tenon, whole", "error (eager)", "graphs, breaks")
    for title in titles:
        table.add_column(title, justify="left" if title == "network" else "right")
    for row in rows:
        for what in ("passes_ms", "step_ms", "cold_ms"):
            ms = row[what]
            cells = [f"{ms[way]:.3g} ({ms[way] / ms['eager']:.2f})" if way in ms else "–" for way in titles[2:7]]
            last = [f"{row['error']['tenon']:.1e} ({row['error']['eager']:.1e})", f"{row['graphs']}, {row['graph_breaks']}"] if what == "passes_ms" else ["", ""]
            table.add_row(row["name"] if what == "passes_ms" else "", {"passes_ms": "passes", "step_ms": "step", "cold_ms": "two cold steps"}[what], *cells, *last)
    return table


def main() -> None:
    """Runs the tasks that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.training", description=__doc__)
    parser.add_argument("--only", default="", help="only networks whose name contains this")
    parser.add_argument("--seconds", type=float, default=10.0, help="measuring time of each row (default 10)")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    parser.add_argument("--no-peer", action="store_true", help="leave torch.compile out (it compiles for minutes)")
    options = parser.parse_args()
    for name, value in (("TENON_CACHE", "0"), ("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")):
        os.environ[name] = value
    rows = [run_task(task, options.seconds, not options.no_peer) for task in tasks() if options.only in task.name]
    Console(width=190).print(table_of(rows))
    if options.json:
        options.json.write_text(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), "tasks": rows}, indent=1))


if __name__ == "__main__":
    main()
