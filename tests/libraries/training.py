"""Trains models of libraries for three steps, each in a process of its own: python -m tests.libraries.training [--seeds N] FAMILY [NAME...].

Each model twice: compiled in an eager loop, and as one compiled step. Judged by eager on a twin and by float64: of each parameter's first gradient g,
|g - g64| <= 4 x eager's + 1e-7 |g64| (2-norms; the median over seeds). Status 1 and a ``!`` where that, a break or an eager call is not as it should be.
"""
from __future__ import annotations

import argparse
import copy
import statistics
import time
import warnings
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import tenon
from tests.libraries import programs
from tests.libraries.__main__ import tensors_of
from tests.libraries.models import FAMILIES
from tests.libraries.processes import in_a_process
from tests.libraries.sweep import CASES, Case, known_case, prepared, why_failed

CASES_IN_TRAINING = {**CASES, "programs": programs.case}
NAMES = {**{family: lambda family=family: [name for name, *_ in FAMILIES[family]()] for family in FAMILIES}, "programs": lambda: list(programs.PROGRAMS)}
LEVELS = ("model", "step")
SECONDS = 2.0  # of steps timed, each way in turn


def without_chance(model: nn.Module) -> nn.Module:
    """The model in training, but for what is random: float64 could not be told the same numbers."""
    model.train()
    for module in model.modules():
        if type(module).__name__ in ("StochasticDepth", "DropPath") or isinstance(module, nn.modules.dropout._DropoutNd):
            module.eval()
        for name, value in list(vars(module).items()):
            if "drop" in name and isinstance(value, float):
                setattr(module, name, 0.0)
    return model


def loss_of(result: Any) -> torch.Tensor:
    """A number that every float result counts in, each place by another weight."""
    total = 0.0
    for leaf in tensors_of(result):
        if leaf.is_floating_point() and leaf.requires_grad:
            weight = torch.linspace(-1, 1, leaf.numel(), dtype=leaf.dtype).view(leaf.shape)
            total = total + (leaf * weight).mean() + 0.1 * F.silu(leaf).mean()
    return total


class Trained:
    """A twin and its optimizer; `step` is one step of an ordinary loop."""

    def __init__(self, model: nn.Module, level: str = "", dtype: torch.dtype | None = None):
        self.model = copy.deepcopy(model).to(dtype) if dtype else copy.deepcopy(model)
        self.call = tenon.compile(self.model) if level == "model" else self.model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.step = tenon.compile(self._step) if level == "step" else self._step

    def _step(self, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = loss_of(self.call(*args, **kwargs))
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def gradients(self) -> list[torch.Tensor]:
        return [parameter.grad.double().clone() for parameter in self.model.parameters() if parameter.grad is not None]


def wide(arguments: Any) -> Any:
    return torch.utils._pytree.tree_map(lambda leaf: leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf, arguments)


def judge(case: Case, level: str) -> dict[str, Any]:
    """Three steps in one level, beside eager's and float64's; then what ran where, the error, and the times of some more."""
    model, args, kwargs = case
    model = without_chance(prepared(model))
    tenon.reset()
    eager, ours, exact = Trained(model), Trained(model, level), Trained(model, dtype=torch.float64)
    worst, losses = 0.0, []
    for number in range(3):
        at = []
        for trained in (eager, ours, exact):
            given = (copy.deepcopy(args), copy.deepcopy(kwargs))
            at.append(trained.step(*(wide(given) if trained is exact else given)).double().item())
        losses.append(abs(at[1] - at[2]) / max(abs(at[0] - at[2]), 1e-6 * abs(at[2]), 1e-30))
        if number == 0:
            for theirs, mine, true in zip(eager.gradients(), ours.gradients(), exact.gradients(), strict=True):
                worst = max(worst, ((mine - true).norm() / ((theirs - true).norm() + 0.25e-7 * true.norm() + 1e-30)).item())
    stats = tenon.stats()
    ms: dict[str, list[float]] = {"eager": [], "tenon": []}
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(ms["eager"]) < 5:
        for way, trained in (("eager", eager), ("tenon", ours)):
            start = time.perf_counter()
            trained.step(args, kwargs)
            ms[way].append((time.perf_counter() - start) * 1e3)
    nodes = {name: backend["nodes"] for name, backend in stats["backends"].items() if backend["nodes"]}
    return {"graphs": stats["graphs"], "breaks": stats["graph_breaks"], "fallbacks": stats["eager_fallbacks"], "recompiles": stats["recompiles"],
            "elsewhere": {name: count for name, count in nodes.items() if name != "llvm"}, "error": worst, "loss": max(losses),
            "ms": {way: min(values) for way, values in ms.items()}}


def row_of(family: str, name: str, level: str, seed: int) -> dict[str, Any]:
    """What one level gave in a process of its own; one that dies is told as such."""

    def judged() -> Iterator[dict[str, Any]]:
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        try:
            yield judge(CASES_IN_TRAINING.get(family, known_case(family))(name), level)
        except Exception as error:  # noqa: BLE001: the table goes on
            yield why_failed(error)

    rows, status = in_a_process(judged)
    return {"failed": f"the process ended with the status {status}"} if status else rows[0]


def over_seeds(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The first row, with the medians of what depends on the seed; one that failed stands for all."""
    for row in rows:
        if "failed" in row:
            return row
    return {**rows[0], **{key: statistics.median(row[key] for row in rows) for key in ("error", "loss")}}


def is_fine(row: dict[str, Any]) -> bool:
    return "failed" not in row and not row["breaks"] and not row["fallbacks"] and "reference" not in row["elsewhere"] and row["error"] <= 4


def line(family: str, name: str, level: str, row: dict[str, Any]) -> str:
    mark = "" if is_fine(row) else " !"
    if "failed" in row:
        return f"| {family} | {name} | {level} | {row['failed']}{mark} |"
    others = ", ".join(f"{count} {backend}" for backend, count in row["elsewhere"].items())
    return (f"| {family} | {name} | {level} | {row['graphs']} | {row['breaks']} | {row['fallbacks']} | {row['recompiles']} | {others} | {row['error']:.1f} | {row['loss']:.1f} "
            f"| {row['ms']['eager']:.1f} | {row['ms']['tenon']:.1f}{mark} |")


HEADER = ("| library | model | compiled | graphs | breaks | eager calls | recompiles | opaque nodes | gradients: error / eager's | losses: error / eager's | eager ms | tenon ms |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|---|")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.libraries.training", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="runs of each, with other weights; the medians of their errors are judged")
    parser.add_argument("--levels", default=",".join(LEVELS), help="model: compiled in an eager loop; step: one compiled step")
    parser.add_argument("family", choices=list(NAMES))
    parser.add_argument("names", nargs="*", help="any model that the library can make by name; the known ones unless some are named")
    options = parser.parse_args()
    bad = 0
    print(HEADER)
    for name in options.names or NAMES[options.family]():
        for level in options.levels.split(","):
            row = over_seeds([row_of(options.family, name, level, seed) for seed in range(options.seeds)])
            bad += not is_fine(row)
            print(line(options.family, name, level, row), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
