"""Functions of the standard library and of NumPy that programs call beside their work: they do not break a graph."""
from __future__ import annotations

import asyncio
import collections
import copy
import functools
import importlib.util
import inspect
import logging
import re
import types
import warnings

import numpy as np
import pytest

import tenon


def counts(fn, *calls):
    """Compares calls with plain ones, twice, and gives the number of breaks."""
    compiled = tenon.compile(fn)
    for args in (*calls, *calls):
        np.testing.assert_equal(compiled(*args), fn(*args))
    return tenon.stats()["graph_breaks"]


ONES = np.ones(3)


# ---- patterns

def test_patterns_that_are_met_for_the_first_time():
    re.purge()

    def run(x, text):
        found = re.match(r"(\w+)_(\d+)", text)
        return x * int(found.group(2)), re.sub("a+", "-", text, flags=re.I), re.compile(r"b|c").split(text)

    assert counts(run, (ONES, "Aab_12"), (ONES, "caa_3")) == 0


def test_wrong_patterns_raise_what_they_raise_plainly():
    def run(x):
        try:
            re.compile("(")
        except re.error as error:
            return x + 1, str(error)

    assert counts(run, (ONES,)) == 0


# ---- inspect.getattr_static

class Base:
    of_base = 1

    @property
    def computed(self):
        raise RuntimeError("must not run")

    def __getattr__(self, name):
        raise RuntimeError("must not run")


class Meta(type):
    of_meta = 7


class Derived(Base, metaclass=Meta):
    def __init__(self):
        self.own = 2
        self.__dict__["computed"] = 3


@pytest.mark.parametrize("name", ("of_base", "computed", "own", "method", "of_meta", "__init__", "__class__", "shape"))
@pytest.mark.parametrize("owner", (Derived(), Derived, Base, 3, "a", ONES, np.ndarray, None), ids=("instance", "derived", "base", "int", "str", "array", "array class", "none"))
def test_static_attributes(owner, name):
    def run(x, owner):
        found = inspect.getattr_static(owner, name, None)
        return x + 1, found is None, found if isinstance(found, int) else type(found).__name__

    counts(run, (ONES, owner))


def test_static_attributes_are_guarded():
    def run(x, owner):
        return x * inspect.getattr_static(owner, "own") + inspect.getattr_static(owner, "of_base")

    owner, compiled = Derived(), tenon.compile(run)
    np.testing.assert_array_equal(compiled(ONES, owner), run(ONES, owner))
    owner.own = 5
    np.testing.assert_array_equal(compiled(ONES, owner), run(ONES, owner))
    Derived.of_base = 11
    try:
        np.testing.assert_array_equal(compiled(ONES, owner), run(ONES, owner))
    finally:
        del Derived.of_base
    np.testing.assert_array_equal(compiled(ONES, owner), run(ONES, owner))
    assert tenon.stats()["graph_breaks"] == 0


# ---- filters of warnings

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


def test_filters_do_not_break_a_graph():
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


def test_recorded_warnings():
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


# ---- NumPy

def test_overflow_that_is_ignored():
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


def test_an_error_state_is_entered_once():
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


def test_breaks_inside_an_error_state():
    def run(x):
        with np.errstate(over="ignore"):
            y = x * x
            tenon.graph_break()
            y = y * y
        return y, np.geterr()["over"]

    counts(run, (ONES,), (np.full(3, 1e100),))


@pytest.mark.parametrize("mode", (np._CopyMode.ALWAYS, np._CopyMode.IF_NEEDED))
def test_copies_by_mode(mode):
    def run(x):
        y = np.array(x, copy=mode)
        y[0] = 5
        return x + 0, y

    assert counts(lambda x: run(x + 0), (ONES,)) == 0


def test_arrays_that_may_share_memory():
    def run(x, y):
        z = x + 1
        return np.may_share_memory(x, x), np.may_share_memory(x, z), np.may_share_memory(z, z[1:]), np.may_share_memory(x, y), z

    counts(run, (ONES, np.ones(3)), (ONES, ONES))
    both = np.arange(6.0)
    counts(run, (both[:3], both[2:5]))


# ---- cached functions

CALLS = []


@functools.cache
def cached_with_a_break(name):
    CALLS.append(name)
    tenon.graph_break()
    return [name]


def test_cached_functions_that_break_are_called_once():
    cached_with_a_break.cache_clear()
    CALLS.clear()

    def run(x):
        first, second = cached_with_a_break("a"), cached_with_a_break("a")
        return x + 1, first is second, first is cached_with_a_break("a")

    compiled = tenon.compile(run)
    for x in (ONES, ONES, np.ones((2, 2))):
        np.testing.assert_equal(compiled(x), (x + 1, True, True))
    assert CALLS == ["a"]
    assert tenon.stats()["graph_breaks"] == 1


@pytest.mark.parametrize("shape", ((), (3,), (2, 3), (1, 2, 3)))
def test_at_least_some_dimensions(shape):
    def run(x):
        first, second = np.atleast_1d(x, x[..., None])
        return first + 1, second, np.atleast_2d(x) * 2, np.atleast_3d(x), np.atleast_2d([1.0, 2.0]) + x.sum()

    assert counts(run, (np.ones(shape),)) == 0


def test_flags_by_name():
    def run(x):
        y = x.T + 0
        return x * 2 if x.flags["C_CONTIGUOUS"] else x * 3, y.flags["F_CONTIGUOUS"], x.flags["WRITEABLE"]

    fixed = np.ones((2, 3))
    fixed.flags.writeable = False
    assert counts(run, (np.ones((2, 3)),), (np.ones((3, 2)).T,), (fixed,)) == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", (np.nan, np.inf, 1e30))
def test_numbers_that_no_integer_holds(value):
    counts(lambda x: (np.full_like(x, value), x + 1), (np.arange(3),))


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


def test_a_copy_that_cannot_be_followed_is_one_break():
    kept = {"a": [1, {2, 3}, {"b": np.ones(2)}], "c": collections.OrderedDict(d=[4])}

    def run(x):
        copied = copy.deepcopy(kept)
        copied["a"][2]["b"] += x[0]
        return x * 2, copied, copied["c"] is kept["c"]

    assert counts(run, (ONES,), (ONES * 3,)) == 1


def test_methods_of_cython_leave_the_rest_compiled():
    def run(x, seed):
        numbers = np.random.default_rng(seed)
        return (x * 2 + numbers.standard_normal(3)) * numbers.uniform(0, 1, size=3) + 1

    counts(run, (ONES, 1), (ONES, 2))
    assert tenon.stats()["graphs"] > 1


def test_an_event_loop_runs_as_it_is():
    async def later(x):
        await asyncio.sleep(0)
        return x * 2

    counts(lambda x: asyncio.run(later(x + 1)) + 1, (ONES,))


def test_mappings_behind_proxies():
    kept = {"a": 2.0, "b": 3}
    shown = types.MappingProxyType(kept)

    def run(x):
        own = types.MappingProxyType({"c": 1})
        found = [len(shown), "a" in shown, shown.get("d", 4), list(shown), sorted(shown.items()), own["c"], shown == kept]
        return x * shown["a"] + sum(shown.values()), found, own

    assert counts(run, (ONES,)) <= 2  # list() of it, and the comparison
    kept["a"] = 5.0
    compiled = tenon.compile(run)
    np.testing.assert_equal(compiled(ONES), run(ONES))
    kept["e"] = 1
    np.testing.assert_equal(compiled(ONES), run(ONES))


def test_parameters_of_signatures():
    def shape(a, b=1, *, c=2, **rest):
        return a

    def run(x):
        parameters = inspect.signature(shape).parameters
        print(end="")
        names = [p.name for p in parameters.values() if p.kind != p.VAR_KEYWORD]
        return x + len(parameters), names, [n for n, p in parameters.items() if p.default is not p.empty]

    assert counts(run, (ONES,)) <= 3


def test_views_of_ordered_dicts_keep_their_order():
    def run(x):
        ordered = collections.OrderedDict(a=1, b=2, c=3)
        ordered.move_to_end("a")
        view = ordered.items()
        print(end="")
        return x + 1, list(view)

    counts(run, (ONES,))
