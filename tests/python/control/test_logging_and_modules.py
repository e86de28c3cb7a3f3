"""Logging, modules that are looked for, and event loops beside the work."""
from __future__ import annotations

import asyncio
import importlib.util
import logging

import numpy as np

import tenon

ONES = np.ones(3)


def test_what_is_not_logged_costs_no_break():
    logger = logging.getLogger("tests.not_logged")
    seen = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append((record.getMessage(), record.funcName, record.lineno))

    def run(x):
        logger.debug("a %s", x.shape)
        if logger.isEnabledFor(logging.DEBUG):
            x = x + 1
        return x * 2

    compiled = tenon.compile(run)
    np.testing.assert_array_equal(compiled(ONES), ONES * 2)
    assert tenon.stats()["graph_breaks"] == 0
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    np.testing.assert_array_equal(compiled(ONES), ONES * 4)
    assert seen == [("a (3,)", "run", run.__code__.co_firstlineno + 1)]
    logger.setLevel(logging.WARNING)
    np.testing.assert_array_equal(compiled(ONES), ONES * 2)


def test_modules_are_looked_for_at_each_call(tmp_path, monkeypatch):
    def run(x):
        return x + 1, importlib.util.find_spec("numpy") is not None, importlib.util.find_spec("tests_looked_for") is None

    compiled = tenon.compile(run)
    for _ in range(2):
        np.testing.assert_equal(compiled(ONES), (ONES + 1, True, True))
    assert tenon.stats()["graph_breaks"] == 0
    (tmp_path / "tests_looked_for.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    np.testing.assert_equal(compiled(ONES), (ONES + 1, True, False))


def test_an_event_loop_runs_as_it_is(counts):
    async def later(x):
        await asyncio.sleep(0)
        return x * 2

    counts(lambda x: asyncio.run(later(x + 1)) + 1, (ONES,))
