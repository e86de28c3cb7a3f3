"""Captures models of libraries as they are and prints a table: python -m tests.libraries [FAMILY...] [--only NAME]."""
from __future__ import annotations

import argparse
import copy
import time

import torch

import tenon
from tests.libraries.models import FAMILIES, is_installed


def leaves(result):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def tensors_of(result):
    """The tensors of a result; an output object of transformers is a mapping."""
    return leaves(dict(result) if hasattr(result, "items") else result)


def error_of(got, model, args, kwargs, want) -> float:
    """The largest error against float64, divided by eager's own (or by the rounding of one element where eager has none)."""
    double = lambda t: t.double() if isinstance(t, torch.Tensor) and t.is_floating_point() else t  # noqa: E731
    judge = copy.deepcopy(model).double()  # a cache among the arguments is empty, and takes the dtype of what it is given
    exact = tensors_of(judge(*map(double, args), **{name: double(value) for name, value in kwargs.items()}))
    worst = 0.0
    for ours, eager, true in zip(got, want, exact):
        if not eager.is_floating_point():
            worst = max(worst, float("inf") if not torch.equal(ours, eager) else 0.0)
            continue
        scale = true.abs().max().item() * torch.finfo(eager.dtype).eps + 1e-30
        worst = max(worst, (ours.double() - true).abs().max().item() / max((eager.double() - true).abs().max().item(), scale))
    return worst


def median_seconds(fn, runs=5):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        fn()
        times.append(time.perf_counter() - start)
    return sorted(times)[runs // 2]


def measure(model, args, kwargs) -> dict:
    model = model.eval()
    fresh = lambda: (copy.deepcopy(args), copy.deepcopy(kwargs))  # noqa: E731
    with torch.no_grad():
        a, k = fresh()
        want = tensors_of(model(*a, **k))
        tenon.reset()
        a, k = fresh()
        report = tenon.explain(model)(*a, **k)
        row = {"graphs": report.graph_count, "breaks": [b.reason for b in report.break_reasons], "times": report.compile_times}
        tenon.reset()
        compiled = tenon.compile(model)
        for _ in range(2):
            a, k = fresh()
            got = tensors_of(compiled(*a, **k))
            if [(t.shape, t.dtype) for t in got] != [(t.shape, t.dtype) for t in want]:
                raise AssertionError("the results have other shapes or dtypes than eager's")
        stats = tenon.stats()
        row["opaque"], row["fallbacks"] = stats["opaque_nodes"], stats["eager_fallbacks"]
        row["error"] = error_of(got, model, *fresh(), want)
        calls = [fresh() for _ in range(10)]  # a cache among the arguments grows with each call
        row["eager"] = median_seconds(lambda: model(*calls[0][0], **calls.pop(0)[1]))
        row["call"] = median_seconds(lambda: compiled(*calls[0][0], **calls.pop(0)[1]))
    return row


def line(family, name, row) -> str:
    times = row["times"]
    return (f"| {family} | {name} | {row['graphs']} | {len(row['breaks'])} | {row['opaque']} | {row['fallbacks']} | {times.get('capture', 0) * 1e3:.0f} "
            f"| {times.get('compile', 0) * 1e3:.0f} | {row['call'] * 1e3:.1f} | {row['eager'] * 1e3:.1f} | {row['error']:.1f} |")


HEADER = ("| library | model | graphs | breaks | opaque nodes | eager calls | capture ms | compile ms | call ms | eager ms | error / eager's |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.libraries", description=__doc__)
    parser.add_argument("families", nargs="*", choices=[*FAMILIES, []], help="all that are installed, unless some are named")
    parser.add_argument("--only", help="models whose name contains this")
    options = parser.parse_args()
    torch.manual_seed(0)
    failed = 0
    print(HEADER)
    for family in options.families or [f for f in FAMILIES if is_installed(f)]:
        for name, model, args, kwargs in FAMILIES[family]():
            if options.only and options.only not in name:
                continue
            try:
                row = measure(model, args, kwargs)
            except Exception as error:  # the table goes on
                failed += 1
                print(f"| {family} | {name} | failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''} |", flush=True)
                continue
            print(line(family, name, row), flush=True)
            for reason in row["breaks"]:
                print(f"<!-- {name}: {reason} -->", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
