"""What NumPy calls ask beside the elements: error states, ways of copying, shared memory, flags, dimensions."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import tenon

ONES = np.ones(3)


def test_overflow_that_is_ignored(counts):
    def run(x):
        with np.errstate(over="ignore"):
            total = np.sum(x * x)
        return total, x + 1

    assert counts(run, (ONES,), (np.full(3, 1e300),)) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = tenon.compile(run)
        assert np.isinf(compiled(np.full(3, 1e200))[0])
        with pytest.raises(RuntimeWarning):
            tenon.compile(lambda x: np.sum(x * x))(np.full(3, 1e200))


def test_an_error_state_is_entered_once(counts):
    def run(x):
        state = np.errstate(over="ignore")
        with state:
            y = x + 1
        try:
            with state:
                y = y + 1
        except TypeError as error:
            return y, str(error)

    counts(run, (ONES,))


def test_breaks_inside_an_error_state(counts):
    def run(x):
        with np.errstate(over="ignore"):
            y = x * x
            tenon.graph_break()
            y = y * y
        return y, np.geterr()["over"]

    counts(run, (ONES,), (np.full(3, 1e100),))


@pytest.mark.parametrize("mode", (np._CopyMode.ALWAYS, np._CopyMode.IF_NEEDED))
def test_copies_by_mode(counts, mode):
    def run(x):
        y = np.array(x, copy=mode)
        y[0] = 5
        return x + 0, y

    assert counts(lambda x: run(x + 0), (ONES,)) == 0


def test_arrays_that_may_share_memory(counts):
    def run(x, y):
        z = x + 1
        return np.may_share_memory(x, x), np.may_share_memory(x, z), np.may_share_memory(z, z[1:]), np.may_share_memory(x, y), z

    counts(run, (ONES, np.ones(3)), (ONES, ONES))
    both = np.arange(6.0)
    counts(run, (both[:3], both[2:5]))


@pytest.mark.parametrize("shape", ((), (3,), (2, 3), (1, 2, 3)))
def test_at_least_some_dimensions(counts, shape):
    def run(x):
        first, second = np.atleast_1d(x, x[..., None])
        return first + 1, second, np.atleast_2d(x) * 2, np.atleast_3d(x), np.atleast_2d([1.0, 2.0]) + x.sum()

    assert counts(run, (np.ones(shape),)) == 0


def test_flags_by_name(counts):
    def run(x):
        y = x.T + 0
        return x * 2 if x.flags["C_CONTIGUOUS"] else x * 3, y.flags["F_CONTIGUOUS"], x.flags["WRITEABLE"]

    fixed = np.ones((2, 3))
    fixed.flags.writeable = False
    assert counts(run, (np.ones((2, 3)),), (np.ones((3, 2)).T,), (fixed,)) == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", (np.nan, np.inf, 1e30))
def test_numbers_that_no_integer_holds(counts, value):
    counts(lambda x: (np.full_like(x, value), x + 1), (np.arange(3),))
