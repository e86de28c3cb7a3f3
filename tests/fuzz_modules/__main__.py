"""Compares random modules, compiled and plain: python -m tests.fuzz_modules [--seed N] [--count N] [--show]."""
from __future__ import annotations

import sys

from tests.fuzz_modules import compare
from tests.fuzz_modules.module import Drawn
from tests.walks import fuzzing

options = fuzzing.parser("tests.fuzz_modules", __doc__, "module", count=100).parse_args()
sys.exit(fuzzing.compare_all(options, "module", Drawn, compare.run))
