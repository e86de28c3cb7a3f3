"""Ctrl-C during captures, compiles and calls: objects and states are as plain execution leaves them."""
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tenon

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
