"""Depth, of results and of recursion, ends in a break or in Python's own error, never with the process."""
import sys
import threading

import numpy as np
import pytest

import tenon


def depth_of(nested):
    depth = 0
    while nested:
        nested = nested[0]
        depth += 1
    return depth


@pytest.fixture
def on_a_small_stack():
    """Runs a function on a thread that has a megabyte for its frames."""

    def run(function):
        before, failures = threading.stack_size(1 << 20), []

        def guarded():
            try:
                function()
            except BaseException as failure:
                failures.append(failure)

        try:
            thread = threading.Thread(target=guarded)
            thread.start()
            thread.join()
        finally:
            threading.stack_size(before)
        assert not failures, failures[0]

    return run


@pytest.mark.parametrize("depth", [150, 5000])
def test_tuples_within_tuples(depth, on_a_small_stack):
    def fn(a, depth):
        nested = ()
        for _ in range(depth):
            nested = (nested, a)
        return a + 1, nested

    compiled, a = tenon.compile(fn), np.ones(3)

    def calls():
        for _ in range(2):
            result, nested = compiled(a, depth)
            np.testing.assert_array_equal(result, a + 1)
            assert nested[1] is a and depth_of(nested) == depth

    on_a_small_stack(calls)


@pytest.mark.parametrize("expression", ["str(items)", "'%s' % (items,)", "[*items, *items]", "items * 2", "items == items", "len(items)", "f'{items}'"])
def test_lists_that_hold_themselves(expression):
    exec(f"def fn(items, x):\n    y = x + 1\n    return y, {expression}, x * 2", space := {})
    items = [1, 2]
    items.append(items)
    compiled, a = tenon.compile(space["fn"]), np.ones(3)

    def outcome(call):
        try:
            return call(items, a)[1]
        except RecursionError:
            return RecursionError

    for _ in range(3):
        want, got = outcome(space["fn"]), outcome(compiled)
        if type(want) is list:
            assert len(got) == len(want) and all(x is y for x, y in zip(got, want))
        else:
            assert got == want


def test_a_compiled_function_that_calls_itself_too_often():
    def fn(x, n):
        return x if n == 0 else compiled(x + 1, n - 1)

    compiled, a = tenon.compile(fn), np.ones(3)
    for n in (3, 50, 200):
        np.testing.assert_array_equal(compiled(a, n), a + n)
    for _ in range(2):
        with pytest.raises(RecursionError):
            compiled(a, 100000)
    np.testing.assert_array_equal(compiled(a, 200), a + 200)


def test_the_limit_of_recursion_is_caught_where_plain_execution_catches_it():
    def deeper(n):
        return 0 if n == 0 else 1 + deeper(n - 1)

    def fn(x, n):
        try:
            tenon.graph_break()
            return x + deeper(n)
        except RecursionError:
            return x - 1

    compiled, a = tenon.compile(fn), np.ones(3)
    for n in (5, 100000, 5, 100000):
        np.testing.assert_array_equal(compiled(a, n), fn(a, n))


@pytest.fixture
def thousand_frames():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # TorchInductor raises it for the process
    yield
    sys.setrecursionlimit(before)


def test_frames_of_a_segment_that_no_longer_fit(thousand_frames):
    def inner(x, n):
        if n == 0:
            tenon.graph_break()
            return x + 1
        return inner(x, n - 1) * 1

    compiled, a = tenon.compile(lambda x: inner(x, 60)), np.ones(3)
    np.testing.assert_array_equal(compiled(a), a + 1)

    def below(n):
        if n == 0:
            return compiled(a)
        return below(n - 1)

    levels = 0
    with pytest.raises(RecursionError):
        for levels in range(800, 1000, 7):
            np.testing.assert_array_equal(below(levels), a + 1)
    np.testing.assert_array_equal(below(100), a + 1)
