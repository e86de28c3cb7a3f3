"""What many compiled functions cost, and that they cost nothing when they are gone."""
import gc
import sys
from pathlib import Path

import numpy as np
import pytest

import tenon
sys.path.append(str(Path(__file__).parents[3]))
from tests.process.functions import A, alive_in_own_process, churn, made, mappings  # noqa: E402


@pytest.fixture(scope="module")
def costs():
    return [compiled - plain for compiled, plain in zip(alive_in_own_process("compiled", 1500), alive_in_own_process("plain", 1500), strict=True)]


def test_a_small_function_costs_few_bytes(costs):
    assert costs[0] < 16 * 1024


def test_functions_share_mappings(costs):
    assert costs[1] < 0.05


def test_what_is_forgotten_takes_no_memory():
    seen = churn(4000, between=500)
    settled, last = seen[2], seen[-1]
    assert last[0] < settled[0] + (8 << 20)
    assert last[1] < settled[1] + 16


def test_functions_that_end_give_their_mappings_back():
    gc.collect()
    before = mappings()
    functions = [tenon.compile(made(k)) for k in range(600)]
    for k, function in enumerate(functions):
        np.testing.assert_allclose(function(A), np.sin(A) * (k + 0.25) + (k * 3 + 0.5))
    del function
    functions.clear()
    gc.collect()
    assert mappings() < before + 16
