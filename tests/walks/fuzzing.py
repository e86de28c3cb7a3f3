"""The command of a comparison of random programs."""
from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import tenon


def parser(package: str, about: str | None, one: str, count: int) -> argparse.ArgumentParser:
    """The options that every such command has; `one` is what it draws."""
    options = argparse.ArgumentParser(prog=f"python -m {package}", description=about)
    options.add_argument("--seed", type=int, default=0, help=f"of the first {one}")
    options.add_argument("--count", type=int, default=count)
    options.add_argument("--show", action="store_true", help=f"print each {one} before it runs")
    return options


def compare_all(options: argparse.Namespace, one: str, draw: Callable[[int], object], run: Callable[[object], str | None]) -> int:
    """Draws and runs one after another and prints what differs; gives the exit status."""
    warnings.simplefilter("ignore")
    different = 0
    for seed in range(options.seed, options.seed + options.count):
        drawn = draw(seed)
        if options.show:
            print(f"seed {seed}: {drawn}", flush=True)
        try:
            found = run(drawn)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            different += 1
            print(f"seed {seed}: {found}\n" + ("" if options.show else f"{drawn}\n"), flush=True)
        tenon.reset()
    print(f"{options.count} {one}s, {different} differ")
    return 1 if different else 0
