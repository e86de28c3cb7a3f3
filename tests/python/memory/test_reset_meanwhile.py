"""What a call works on outlives a reset, a nested call and other threads."""
import gc
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import tenon


@pytest.fixture
def many_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work, count):
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_a_reset_on_another_thread_while_a_call_is_captured(many_switches):
    torch = pytest.importorskip("torch")

    def layer(x, k):
        return ((x.sin() + k).cos() * 2).tanh()

    def fn(x, k):
        for _ in range(4):
            x = layer(x, k)
        tenon.graph_break()
        return layer(x, k) + 1

    captured, x = threading.Event(), torch.ones(3)

    def work(number):
        if number == 0:
            while not captured.is_set():
                tenon.reset()
                time.sleep(0)
            return
        try:
            for k in range(8):
                compiled = tenon.compile(fn)
                for _ in range(2):
                    torch.testing.assert_close(compiled(x, k), fn(x, k))
        finally:
            captured.set()

    in_threads(work, 2)


def test_threads_with_numpys_errors_handled_in_their_own_way(many_switches):
    def fn(a, b):
        return np.sqrt(a) + b

    compiled = tenon.compile(fn)
    compiled(np.ones(4), np.ones(4))

    def work(number):
        with np.errstate(all="ignore"):
            for i in range(1000):
                a, b = np.full(4, 1e5 * number + i), np.full(4, float(i))
                np.testing.assert_array_equal(compiled(a, b), fn(a, b))

    in_threads(work, 4)


class Key:
    """Has the hash of a text, and runs something when a lookup compares the two."""

    def __init__(self, text):
        self.text, self.action = text, None

    def __hash__(self):
        return hash(self.text)

    def __eq__(self, other):
        action, self.action = self.action, None
        if action:
            action()
        return False


@pytest.mark.parametrize("action", ["reset", "call", "call_of_another_shape", "collect"])
def test_a_lookup_of_a_guard_may_run_anything(action):
    key, a = Key("a"), np.ones(3)
    table = {key: 0, "a": a, "b": a + 1}

    def fn(table, x):
        return table["a"] + table["b"] + x

    compiled = tenon.compile(fn)
    actions = {"reset": tenon.reset, "call": lambda: compiled(table, a), "call_of_another_shape": lambda: compiled(table, np.ones((2, 3))),
               "collect": lambda: (tenon.reset(), gc.collect())}
    for _ in range(6):
        compiled(table, a)
        key.action = actions[action]
        np.testing.assert_array_equal(compiled(table, a), fn(table, a))


def test_a_reset_ends_objects_whose_finalizers_call_the_function():
    calls = []

    class Ends:
        def __init__(self, action):
            weakref.finalize(self, action)

    def fn(a, steps, ends):
        for _ in range(steps):
            tenon.graph_break()
            a = a * 2
        return a if ends is None else a + 1

    compiled, a = tenon.compile(fn), np.ones(3)

    def again():
        calls.append(compiled(a, 9 + len(calls), None))

    for steps in range(4):
        constant = Ends(again)
        exec("def read(x): return (x + 1, part)", space := {"part": constant})
        reading = tenon.compile(space["read"])
        reading(a), compiled(a, steps, constant)
        del constant, space, reading
        tenon.reset()
        gc.collect()
    assert len(calls) == 4
    for number, result in enumerate(calls):
        np.testing.assert_array_equal(result, np.ones(3) * 2.0 ** (9 + number))


def test_an_exception_that_resets_when_it_is_made():
    class Resets(Exception):
        def __init__(self):
            tenon.reset()
            gc.collect()

    class Failing:
        def __iter__(self):
            return self

        def __next__(self):
            raise Resets

    def fn(a):
        tenon.graph_break()
        try:
            raise Resets
        except Resets:
            a = a * 2
        try:
            for _ in Failing():
                pass
        except Resets:
            a = a * 3
        return a

    compiled = tenon.compile(fn)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(np.ones(3)), np.full(3, 6.0))


def test_a_comparison_of_keys_that_drops_what_was_read():
    class Key:
        def __init__(self, action=None):
            self.action = action

        def __hash__(self):
            return 17

        def __eq__(self, other):
            if self.action:
                self.action()
            return self is other

    class Box:
        pass

    box, wanted = Box(), Key()
    box.scale = np.full(3, 2.0)

    def fn(a, table):
        return a * box.scale + table[wanted]

    compiled, a = tenon.compile(fn), np.ones(3)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(a, {wanted: np.full(3, 5.0)}), np.full(3, 7.0))

    def drop():
        box.scale = np.full(3, 4.0)  # the only reference to what was read
        gc.collect()

    for _ in range(3):
        box.scale = np.full(3, 2.0)
        result = compiled(a, {Key(drop): 0, wanted: np.full(3, 5.0)})
        assert result.tolist() in ([7.0] * 3, [9.0] * 3)
