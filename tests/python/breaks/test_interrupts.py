"""Ctrl-C during captures, compiles and calls: objects and states are as plain execution leaves them."""
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tenon
from tests.python.conftest import of_many_kernels

UP = np.arange(1.0, 6.0)


def test_an_interrupt_leaves_objects_right(monkeypatch):
    class Box:
        items = []

    def interrupt(x):
        raise KeyboardInterrupt

    def fn(x, stop):
        Box.items.append(1)
        try:
            y = x + 1
            stop(y)
            return y
        finally:
            Box.items.append(2)

    compiled = tenon.compile(fn)
    for stop in (tenon.disable(interrupt), tenon.disable(lambda x: None)) * 2:
        for way in (compiled, fn):
            Box.items.clear()
            try:
                np.testing.assert_allclose(way(UP, stop), UP + 1)
            except KeyboardInterrupt:
                pass
            assert Box.items == [1, 2]


def test_an_interrupt_while_compiling_comes_out():
    log = []

    def fn(x):
        log.append(1)
        for size in range(2, 60):  # as many kernels
            x = x + np.mean(np.tanh(np.ones((size, 7)) * x.sum()), axis=0).sum() / size
        return x

    def interrupt(number, frame):
        raise KeyboardInterrupt

    compiled, expected = tenon.compile(fn), fn(UP)
    before, handling = signal.signal(signal.SIGALRM, interrupt), np.geterr()
    try:
        for milliseconds in (1, 2, 4, 6, 10, 30, 100):  # into the capture, the compile, or neither
            log.clear()
            try:
                signal.setitimer(signal.ITIMER_REAL, milliseconds / 1000)
                compiled(UP)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                assert log in ([], [1])
            assert np.geterr() == handling
            log.clear()
            np.testing.assert_allclose(compiled(UP), expected)
            assert log == [1]
            tenon.reset()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Arrived(Exception):
    """What a handler raises that is no KeyboardInterrupt."""


def raise_arrived(number, frame):
    raise Arrived


def code_stored():
    return tenon.stats()["host"]["cache"]["stored"]


def test_a_compile_ends_soon_after_an_interrupt():
    """Seen by what it leaves undone: code that was not made yet is not stored."""
    tenon.compile(of_many_kernels(150, 0))(UP)
    start, stored = time.process_time(), code_stored()
    tenon.compile(of_many_kernels(150, 1))(UP)
    whole, whole_code = time.process_time() - start, code_stored() - stored
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    try:
        for serial, share in enumerate((0.1, 0.35), 2):  # passes and planning, LLVM's work
            fn = of_many_kernels(150, serial)
            compiled, graphs, stored = tenon.compile(fn), tenon.stats()["graphs"], code_stored()
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_PROF, share * whole)
                compiled(UP)
            assert code_stored() - stored < whole_code or whole_code == 0  # a device's backend may store none
            for _ in range(2):
                np.testing.assert_allclose(compiled(UP), fn(UP), rtol=1e-9)
            assert tenon.stats()["graphs"] == graphs + 1
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def test_what_a_handler_raises_in_a_capture_arrives_inside_the_function():
    caught = []

    def fn(x):
        try:
            y = np.linalg.inv(x)
            for _ in range(50):
                y = y + np.sin(x)
            return y
        except Arrived as arrived:
            caught.append(arrived.__traceback__.tb_frame.f_code)

    x, before = np.eye(40), signal.signal(signal.SIGALRM, raise_arrived)
    expected = fn(x)
    try:
        for delay in (0.0005, 0.001, 0.002, 0.003, 0.005, 0.008):
            compiled = tenon.compile(fn)
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                result = compiled(x)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Arrived:
                continue  # in front of the `try`, or behind the call
            assert result is None or np.allclose(result, expected)
            tenon.reset()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert set(caught) <= {fn.__code__}


def with_notes(serial, notes):
    """A function in a file of its own that calls `note` and NumPy's functions in turn, and the lines of those calls."""
    steps = [f"    a = np.tanh(a * {serial}.5 + {i}.25)\n    a = a - np.linalg.inv(np.eye(30) * 40 + a).mean() / 8\n    note({i})\n    a = np.sin(a) + np.mean(a)\n" for i in range(notes)]
    names = {"np": np}
    exec(compile("def fn(a, note):\n" + "".join(steps) + "    return a\n", f"with_notes_{serial}.py", "exec"), names)
    return names["fn"], [4 * i + 4 for i in range(notes)]


def user_lines(error):
    """Files and lines of the frames that an error came through, but for this file's and libraries'."""
    lines, traceback = [], error.__traceback__
    while traceback:
        lines.append((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    return [line for line in lines if line[0].startswith("with_notes")]


@pytest.mark.parametrize("way", ["first call", "recompile", "later call"])
def test_what_a_handler_raises_arrives_at_the_line_that_was_reached(way):
    """In one frame of the function, between the call whose effect was seen last and the next one; or in the caller, before the first or after the last."""
    x, log, arrived, inside = np.eye(30) + np.random.default_rng(0).random((30, 30)) / 100, [], 0, 0
    note = tenon.disable(log.append)
    serials = itertools.count({"first call": 100, "recompile": 200, "later call": 300}[way])

    def prepared():
        fn, lines = with_notes(next(serials), 5)
        compiled = tenon.compile(fn)
        for given in {"first call": [], "recompile": [x.astype(np.float32)], "later call": [x, x]}[way]:
            compiled(given, note)
        log.clear()
        return fn, compiled, lines

    fn, compiled, lines = prepared()
    start = time.perf_counter()
    compiled(x, note)
    seconds = time.perf_counter() - start
    before = signal.signal(signal.SIGALRM, raise_arrived)
    try:
        for n in range(24):
            fn, compiled, lines = prepared()
            try:
                signal.setitimer(signal.ITIMER_REAL, seconds * (n + 0.5) / 24)
                compiled(x, note)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Arrived as error:
                arrived += 1
                seen = user_lines(error)
                inside += len(seen)
                if seen:
                    assert len(seen) == 1 and seen[0][0] == fn.__code__.co_filename
                    assert [1, *lines][len(log)] <= seen[0][1] <= [*lines, lines[-1] + 2][len(log)]
                else:
                    assert log in ([], [*range(5)])
            log.clear()
            np.testing.assert_allclose(compiled(x, note), fn(x, lambda i: None), rtol=1e-9)
            assert log == [*range(5)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert arrived >= 3 and inside >= 1


@pytest.mark.parametrize("name", ["first call", "opaque", "opaque in Python", "breaks", "loops", "recompile", "later call in Python"])
def test_no_signal_is_lost(name):
    ran = subprocess.run([sys.executable, Path(__file__).parents[2] / "process/interrupts.py", "6", name], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_handler_that_raises_nothing_stops_nothing():
    ticks = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: ticks.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        compiled = tenon.compile(lambda x: np.tanh(np.sin(x) * 3.125 + np.median(x)))
        for _ in range(50):
            np.testing.assert_allclose(compiled(UP), np.tanh(np.sin(UP) * 3.125 + 3.0))
        stats = tenon.stats()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ticks
    assert stats["eager_fallbacks"] == 0


def test_handlers_run_again_after_a_capture():
    """In the thread that has captured, and with the number of the signal."""
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append((number, threading.current_thread() is threading.main_thread())))
    try:
        tenon.compile(lambda x: np.median(x) + x)(UP)
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(1000):
            pass
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [(signal.SIGUSR1, True)]
