"""Ctrl-C during captures, compiles and calls: objects and states are as plain execution leaves them."""
import signal

import numpy as np

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
