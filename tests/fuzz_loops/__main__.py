"""Counts the work of random loops: python -m tests.fuzz_loops [--seed N] [--count N]."""
from __future__ import annotations

import sys

from tests.fuzz_loops import counts
from tests.fuzz_loops.program import Loop
from tests.walks import fuzzing

parser = fuzzing.parser("tests.fuzz_loops", __doc__, "loop", count=100)
options = parser.parse_args()
sys.exit(fuzzing.compare_all(options, "loop", Loop, counts.run))
