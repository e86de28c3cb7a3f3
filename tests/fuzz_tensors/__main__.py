"""Compares random programs of tensors, compiled and plain: python -m tests.fuzz_tensors [--seed N] [--count N] [--sizes small|large]."""
from __future__ import annotations

import sys

from tests.fuzz_tensors import compare
from tests.fuzz_tensors.program import SIZES, Program
from tests.walks import fuzzing

parser = fuzzing.parser("tests.fuzz_tensors", __doc__, "program", count=200)
parser.add_argument("--sizes", choices=list(SIZES), default="small")
options = parser.parse_args()
sys.exit(fuzzing.compare_all(options, "program", lambda seed: Program(seed, options.sizes), compare.run))
