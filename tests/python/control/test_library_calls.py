"""Functions of the standard library and of NumPy that programs call beside their work: they do not break a graph."""
from __future__ import annotations

import collections
import copy
import functools
import inspect
import re

import numpy as np
import pytest

import tenon

ONES = np.ones(3)


# ---- patterns

def test_patterns_that_are_met_for_the_first_time(counts):
    re.purge()

    def run(x, text):
        found = re.match(r"(\w+)_(\d+)", text)
        return x * int(found.group(2)), re.sub("a+", "-", text, flags=re.I), re.compile(r"b|c").split(text)

    assert counts(run, (ONES, "Aab_12"), (ONES, "caa_3")) == 0


def test_wrong_patterns_raise_what_they_raise_plainly(counts):
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
def test_static_attributes(counts, owner, name):
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


def test_caches_have_room_for_so_many_results():
    def run(x):
        calls = []

        @functools.lru_cache(maxsize=2)
        def kept(n, scale=2):
            calls.append(n)
            return n * scale

        found = [kept(n) for n in (1, 2, 1, 3, 2)] + [kept(2, scale=3)]
        kept.cache_clear()
        return x + kept(3), found, calls

    compiled = tenon.compile(run)
    for _ in range(2):
        np.testing.assert_equal(compiled(ONES), run(ONES))


@functools.lru_cache
def doubled(n):
    return n * 2


def test_caches_tell_ints_from_floats():
    def run(x):
        return x + 1, [doubled(n) for n in (1, 1.0, True, 2.0, 2)]

    compiled = tenon.compile(run)
    for _ in range(2):
        doubled.cache_clear()
        got = compiled(ONES)[1]
        doubled.cache_clear()
        assert [(type(n), n) for n in got] == [(type(n), n) for n in run(ONES)[1]]


def test_cached_functions_that_note_their_calls():
    def run():
        calls = []

        @functools.lru_cache(maxsize=2)
        def kept(n):
            calls.append(n)
            return n

        tenon.graph_break()
        calls = []
        return [kept(n) for n in (1, 2, 1, 3, 2)], calls

    compiled = tenon.compile(run)
    for _ in range(2):
        assert compiled() == run()


def test_a_cache_finds_a_number_that_varies():
    def run(x, n):
        calls = []

        @functools.lru_cache(maxsize=2)
        def kept(k):
            calls.append(k)
            return k if isinstance(k, int) else len(k)

        return x + n, [kept(k) for k in (1, (6 - n, 2), 6 - n, (1, 2), 1)], calls

    compiled = tenon.compile(run)
    for n in (4, 3, 5, 2, 5):
        np.testing.assert_equal(compiled(ONES, n), run(ONES, n))


def test_a_copy_that_cannot_be_followed_is_one_break(counts):
    kept = {"a": [1, {2, 3}, {"b": np.ones(2)}], "c": collections.OrderedDict(d=[4])}

    def run(x):
        copied = copy.deepcopy(kept)
        copied["a"][2]["b"] += x[0]
        return x * 2, copied, copied["c"] is kept["c"]

    assert counts(run, (ONES,), (ONES * 3,)) == 1


def test_methods_of_cython_leave_the_rest_compiled(counts):
    def run(x, seed):
        numbers = np.random.default_rng(seed)
        return (x * 2 + numbers.standard_normal(3)) * numbers.uniform(0, 1, size=3) + 1

    counts(run, (ONES, 1), (ONES, 2))
    assert tenon.stats()["graphs"] > 1


def test_parameters_of_signatures(counts):
    def shape(a, b=1, *, c=2, **rest):
        return a

    def run(x):
        parameters = inspect.signature(shape).parameters
        print(end="")
        names = [p.name for p in parameters.values() if p.kind != p.VAR_KEYWORD]
        return x + len(parameters), names, [n for n, p in parameters.items() if p.default is not p.empty]

    assert counts(run, (ONES,)) <= 3
