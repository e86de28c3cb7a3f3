"""Filters of warnings that hold inside a `with`, and what is issued under them."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import tenon

ONES = np.ones(3)


def issued(fn, *args):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = fn(*args)
    return result, [(str(each.message), each.category) for each in seen]


def filtered(x, action):
    warnings.warn("before")
    with warnings.catch_warnings():
        warnings.simplefilter(action, UserWarning)
        warnings.warn("inside")
        y = x * 2
    warnings.warn("after")
    return y


@pytest.mark.parametrize("action", ("ignore", "always", "error"))
def test_filters_that_hold_inside_a_with(action):
    def run(x):
        try:
            return filtered(x, action)
        except UserWarning as error:
            return str(error)

    compiled, before = tenon.compile(run), list(warnings.filters)
    for _ in range(3):
        (got, seen), (want, expected) = issued(compiled, ONES), issued(run, ONES)
        np.testing.assert_equal(got, want)
        assert seen == expected and len(seen) == (3 if action == "always" else 2 if action == "ignore" else 1)
        assert warnings.filters == before


def test_filters_do_not_break_a_graph(counts):
    def run(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("ignore", message="inside", category=UserWarning)
            warnings.warn("inside")
            return x * 2

    with warnings.catch_warnings():  # pytest records what is issued
        warnings._showwarnmsg_impl = warnings._formatwarnmsg  # any function of the module
        assert counts(run, (ONES,)) == 0


def test_what_numpy_warns_of_under_filters():
    def run(x):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                return 1 / x
            except RuntimeWarning as error:
                return str(error)

    compiled = tenon.compile(run)
    for x in (ONES, np.zeros(3), ONES):
        np.testing.assert_equal(compiled(x), run(x))


def test_what_torch_warns_of_under_filters():
    torch = pytest.importorskip("torch")

    def run(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = torch.nn.functional.softmax(x)  # without a dimension: warns
            z = torch.searchsorted(torch.arange(6.0).reshape(2, 3).t(), x.reshape(3, 1))  # not contiguous: warns
        return y, z

    compiled = tenon.compile(run)
    for _ in range(2):
        (got, seen), (want, expected) = issued(compiled, torch.ones(3)), issued(run, torch.ones(3))
        assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1]) and seen == expected == []


def test_recorded_warnings(counts):
    def run(x):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            warnings.warn("inside")
            count = len(seen)
        return x * count

    counts(run, (ONES,))


def test_a_break_inside_filters():
    def run(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.warn("first")
            tenon.graph_break()
            warnings.warn("second")
            y = x + 1
        warnings.warn("third")
        return y

    compiled = tenon.compile(run)
    for _ in range(2):
        assert issued(compiled, ONES)[1] == issued(run, ONES)[1] == [("third", UserWarning)]


def test_what_a_kernel_of_torch_warns_of_is_recorded():
    torch = pytest.importorskip("torch")

    def run(x):
        with warnings.catch_warnings(record=True) as first:
            warnings.simplefilter("always")
            y = x.var()
            inside = len(first)
            y = y + x.std()
            first = [str(each.message)[:5] for each in first]
        with warnings.catch_warnings(record=True) as second:
            torch.std_mean(x)
        return inside, first, len(second), x * 2

    def run_with(x, issued):
        x.var()
        return len(issued)

    compiled, counts_them = tenon.compile(run), tenon.compile(run_with)
    with torch.no_grad():
        for _ in range(3):
            assert compiled(torch.ones(1))[:2] == run(torch.ones(1))[:2] == (1, ["var()", "std()"])
            with warnings.catch_warnings(record=True) as issued:
                warnings.simplefilter("always")
                assert counts_them(torch.ones(1), issued) == 1
