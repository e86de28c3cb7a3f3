"""Runs test modules of CPython or PyTorch plainly and with each test method compiled: python -m tests.suites MODULE... (README.md)."""
from __future__ import annotations

import argparse
import collections
import importlib
import io
import os
import pathlib
import pickle
import signal
import sys
import unittest

import tenon

HERE = pathlib.Path(__file__).parent


def expected() -> dict[str, str]:
    """The tests that are known to differ, with the reason."""
    lines = [line for path in sorted(HERE.glob("expected_*.txt")) for line in path.read_text().splitlines()]
    return dict(line.split(": ", 1) for line in lines if line.strip() and not line.startswith("#"))


def cases(module: str) -> list[unittest.TestCase]:
    """The test cases of a module, in the order of their names."""
    found: list[unittest.TestCase] = []

    def collect(suite: unittest.TestSuite) -> None:
        for each in suite:
            collect(each) if isinstance(each, unittest.TestSuite) else found.append(each)

    loaded = importlib.import_module(module)
    vars(loaded).pop("load_tests", None)  # torch's leaves out what its own environment asks to leave out
    collect(unittest.TestLoader().loadTestsFromModule(loaded))
    return [case for case in found if case._testMethodName.startswith("test") and isinstance(getattr(case, case._testMethodName), type(case.run))]


def outcome(case: unittest.TestCase) -> str:
    """How a test ends: "passed", "skipped", or the last line of what went wrong."""
    result = unittest.TestResult()
    out, err = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = io.StringIO()
    try:
        case.run(result)
    finally:
        sys.stdout, sys.stderr = out, err
    wrong = [text for _, text in result.failures + result.errors]
    if wrong:
        return wrong[0].strip()
    return "skipped" if result.skipped else "passed"


def compiled(case: unittest.TestCase, twice: bool) -> unittest.TestCase:
    """The case with its test method compiled; a call that returns counts the captures it came to."""
    name = case._testMethodName
    method = tenon.compile(getattr(type(case), name))

    def run() -> None:
        for _ in range(2 if twice else 1):
            method(case)

    run.__dict__.update(getattr(type(case), name).__dict__)  # what decorators of unittest have noted there
    setattr(case, name, run)
    return case


def in_child(work, seconds: int) -> object:
    """What `work` gives in a process of its own; how that ended if it gave nothing within `seconds`."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(seconds)
        with os.fdopen(write, "wb") as out:
            try:
                given = work()
            except BaseException as error:  # noqa: BLE001  what a test lets through is an outcome
                given = f"{type(error).__name__}: {error}"
            pickle.dump(given, out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as result:
        try:
            given = pickle.load(result)
        except EOFError:
            given = None
    _, status = os.waitpid(child, 0)
    return given if given is not None else f"the process ended with status {status}"


def compare(case: unittest.TestCase, twice: bool, seconds: int) -> tuple[str, str, int]:
    """The verdict on one test, what went wrong, and the number of graphs that were run."""
    plain = in_child(lambda: outcome(case), seconds)
    if plain == "skipped":
        return "skipped", "", 0
    if plain != "passed":
        return "fails plainly", "", 0

    def run() -> tuple[str, int]:
        ended = outcome(compiled(case, twice))
        return ended, tenon.stats()["graphs"]

    got = in_child(run, seconds)
    if isinstance(got, str):
        return ("crashes" if got.startswith("the process") else "differs"), got, 0
    return ("same", "", got[1]) if got[0] == "passed" else ("differs", *got)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=__doc__)
    parser.add_argument("modules", nargs="+", help="as they are imported: test.test_copy, test_autograd, nn.test_module_hooks")
    parser.add_argument("--at", help="a folder to import them from: `test` of a checkout of PyTorch")
    parser.add_argument("--only", default="", help="tests whose names hold this word")
    parser.add_argument("--twice", action="store_true", help="call each compiled method a second time")
    parser.add_argument("--seconds", type=int, default=60, help="for one test")
    parser.add_argument("--verbose", action="store_true", help="whole tracebacks")
    options = parser.parse_args()
    if options.at:
        sys.path.insert(0, options.at)
    known, bad = expected(), 0
    for module in options.modules:
        counts: collections.Counter[str] = collections.Counter()
        for case in cases(module):
            if options.only not in case.id():
                continue
            verdict, why, graphs = compare(case, options.twice, options.seconds)
            if verdict in ("differs", "crashes") and case.id() in known:
                verdict = "differs as expected"
            counts[verdict] += 1
            counts["graphs"] += graphs
            if verdict in ("differs", "crashes"):
                bad += 1
                print(f"{case.id()}: {verdict}: {why if options.verbose else why.splitlines()[-1]}", flush=True)
        print(f"{module}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())), flush=True)
    return 1 if bad else 0


sys.exit(main())
