"""Compares random modules, compiled and plain: python -m tests.fuzz_modules [--seed N] [--count N] [--show]."""
from __future__ import annotations

import argparse
import sys
import warnings

import tenon
from tests.fuzz_modules import compare
from tests.fuzz_modules.module import Drawn


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_modules", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first module")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--show", action="store_true", help="print each module before it runs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    different = 0
    for seed in range(options.seed, options.seed + options.count):
        drawn = Drawn(seed)
        if options.show:
            print(f"seed {seed}: {drawn}", flush=True)
        try:
            found = compare.run(drawn)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            different += 1
            print(f"seed {seed}: {found}\n" + ("" if options.show else f"{drawn}\n"), flush=True)
        tenon.reset()
    print(f"{options.count} modules, {different} differ")
    return 1 if different else 0


sys.exit(main())
