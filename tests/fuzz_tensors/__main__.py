"""Compares random programs of tensors, compiled and plain: python -m tests.fuzz_tensors [--seed N] [--count N] [--sizes small|large]."""
from __future__ import annotations

import argparse
import sys
import warnings

import tenon
from tests.fuzz_tensors import compare
from tests.fuzz_tensors.program import SIZES, Program


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_tensors", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--sizes", choices=list(SIZES), default="small")
    parser.add_argument("--show", action="store_true", help="print each program before it runs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    different = 0
    for seed in range(options.seed, options.seed + options.count):
        program = Program(seed, options.sizes)
        if options.show:
            print(f"seed {seed}: {program}", flush=True)
        try:
            found = compare.run(program)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            different += 1
            print(f"seed {seed}: {found}\n    {program}", flush=True)
        tenon.reset()
    print(f"{options.count} programs, {different} differ")
    return 1 if different else 0


sys.exit(main())
