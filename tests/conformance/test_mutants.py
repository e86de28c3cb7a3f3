"""The conformance kit is not vacuous: it passes a right backend and catches every seeded fault."""
import json
import pathlib
import re

import pytest

MUTANTS = pathlib.Path(__file__).parents[1] / "plugins/mutants"
NAMES = sorted({name for path in MUTANTS.glob("*_faults.cpp") for name in re.findall(r'\{\.name = "(\w+)"', path.read_text())})

# Enough of the catalogue to show any fault. `reference`, of which the right backend here is a copy, runs all of it among the C++ tests.
OPS = "add,sub,mul,le,floor,remainder,round,maximum,where,sum,argmax,var,permute,cat,mm,_to_copy,logical_not,max_dim,relu,abs,clamp"


@pytest.fixture(scope="session")
def mutants(build) -> pathlib.Path:
    return build / "tests/plugins/mutants.so"


def test_there_are_enough():
    assert len(NAMES) >= 30


def test_right_backend_passes(kit, mutants):
    status, report = kit(mutants, "--filter", OPS)
    assert (status, report["failures"], report["not_claimed"]) == (0, [], 0)
    assert report["passed"] >= 4000


@pytest.mark.parametrize("name", NAMES)
def test_mutant_is_caught(kit, mutants, name):
    status, report = kit(mutants, "--options", json.dumps({"mutant": name}), "--filter", OPS, "--time-limit", "4", "--stop-at-failure")
    assert status == 1 and report["failures"], f"{name} went unnoticed"


def test_crashes_and_hangs_are_results_of_their_case(kit, mutants):
    for name, text in (("crashes_on_zero_size", "crashed: Aborted"), ("exits_on_zero_size", "exit status 0"), ("hangs_on_zero_size", "ran longer than 2 s")):
        _, report = kit(mutants, "--options", json.dumps({"mutant": name}), "--filter", "add", "--time-limit", "2")
        assert len(report["failures"]) == 1
        assert text in report["failures"][0]["text"]
        assert report["failures"][0]["op"] == "add" and report["failures"][0]["sample"]
        assert report["passed"] > 0
