"""A short run of random loops; `python -m tests.fuzz_loops` runs for as long as one likes."""
import dataclasses
import math
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3]))
from tests.fuzz_loops.counts import Tally, objections, tally  # noqa: E402
from tests.fuzz_loops.program import ITERATIONS, Loop  # noqa: E402
from tests.walks.sampled import run_module  # noqa: E402


@pytest.mark.timeout(300)
def test_work_grows_with_the_iterations_alone():
    run = run_module("tests.fuzz_loops", "--seed", "1", "--count", "10")
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert run.stdout.splitlines()[-1] == "10 loops, 0 differ"


@pytest.mark.parametrize("seed", ["62", "210", "394", "726", "735", "764"], ids=["what is stored in passing", "what is padded", "a scaled array that all steps read", "what waits for a value that came into memory", "what waits for a sum", "what several kernels came to read"])
def test_loops_that_did_more_than_node_by_node(seed):
    run = run_module("tests.fuzz_loops", "--seed", seed, "--count", "1")
    assert run.stdout.splitlines()[-1] == "1 loops, 0 differ", run.stdout[-4000:] + run.stderr[-2000:]


def test_results_that_nothing_reads_are_looked_at_for_errors_and_let_go():
    loop = Loop(628)  # of its products only the last one is read
    counted, _ = tally(loop, 20, True)
    assert counted.live_bytes < 8 * 8 * math.prod(loop.shape)


def test_the_counts_tell_linear_from_quadratic_work():
    linear = {n: Tally(n, 10 * n, 20, 100 * n, 100 * n, 100 * n, 1000, 1000) for n in ITERATIONS}
    assert not list(objections(linear, linear))
    quadratic = {n: dataclasses.replace(t, loads=t.loads * n) for n, t in linear.items()}
    assert any("accesses in 40 steps where" in o for o in objections(quadratic, linear))
    growing = {n: dataclasses.replace(t, live_bytes=1000 * n) for n, t in linear.items()}
    assert any("bytes alive in 40 steps" in o for o in objections(growing, linear))
