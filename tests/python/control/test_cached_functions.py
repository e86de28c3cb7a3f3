"""functools.lru_cache and its like: what they hold, count and drop is as after plain calls, whoever calls."""
import functools
import re

import numpy as np
import pytest

ONES = np.ones(2)


def counts(cache):
    return tuple(cache.cache_info())


def test_a_result_is_kept_until_the_cache_is_cleared(as_plain):
    def scenario(compile):
        state = {"value": 1}

        @functools.cache
        def setting():
            return state["value"]

        fn = compile(lambda x: x * setting())
        seen = [fn(ONES), counts(setting)]
        state["value"] = 2
        seen += [fn(ONES), fn(ONES), counts(setting)]
        setting.cache_clear()
        return [*seen, fn(ONES), counts(setting), setting()]

    as_plain(scenario)


def test_an_object_is_the_one_that_the_cache_holds(as_plain):
    def scenario(compile):
        @functools.cache
        def made(n):
            return [n]

        def use(x, n):
            made(n).append(n)
            return x + len(made(n))

        fn, give = compile(use), compile(lambda n: made(n))
        seen = [fn(ONES, n) for n in (1, 1, 2, 1)] + [counts(made), give(1) is made(1), give(3) is made(3)]
        made(1).append(0)
        seen.append(fn(ONES, 1))
        made.cache_clear()
        return [*seen, fn(ONES, 1), made(1), counts(made)]

    as_plain(scenario)


@pytest.mark.parametrize("size", [0, 1, 2, 3, None])
@pytest.mark.parametrize("make", [lambda n: n * 10, lambda n: [n]], ids=["number", "list"])
def test_a_cache_of_limited_size_drops_the_same(size, make, as_plain):
    def scenario(compile):
        calls = []

        @functools.lru_cache(maxsize=size)
        def kept(n):
            calls.append(n)
            return make(n)

        one, two = compile(lambda n: kept(n)), compile(lambda a, b: (kept(a), kept(b), kept(a)))
        seen = []
        for n in (1, 2, 1, 3, 2, 1, 1, 4, 3):
            seen += [one(n), counts(kept)]
        for a, b in ((1, 2), (3, 1), (4, 2), (1, 4), (5, 5), (4, 1)):
            seen += [two(a, b), counts(kept)]
        return [*seen, calls]

    as_plain(scenario)


def test_keys_tell_names_and_types(as_plain):
    def scenario(compile):
        @functools.lru_cache
        def named(a, b=1, *, c=2):
            return a, b, c

        @functools.lru_cache(typed=True)
        def typed(a):
            return type(a).__name__

        @functools.lru_cache
        def untyped(a):
            return type(a).__name__

        fn = compile(lambda: (named(1), named(1, b=2), named(a=1, b=2), named(b=2, a=1), [f(a) for f in (typed, untyped) for a in (1, 1.0, True, "1")]))
        return [fn(), fn(), fn(), [counts(f) for f in (named, typed, untyped)]]

    as_plain(scenario)


def test_functions_that_write_raise_and_call_each_other(as_plain):
    def scenario(compile):
        log = []

        @functools.cache
        def inner(n):
            log.append(n)
            return [n]

        @functools.cache
        def outer(n):
            if len(log) < 2:
                log.append("too early")
                raise ValueError("too early")
            return inner(n)

        @functools.cache
        def fibonacci(n):
            return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

        def use(x, n):
            try:
                return x + outer(n)[0] + fibonacci(n)
            except ValueError:
                return x - 1

        fn, seen = compile(use), []
        for n in (5, 5, 5, 5, 7, 5):
            seen += [fn(ONES, n), list(log), counts(inner), counts(outer), counts(fibonacci)]
        inner.cache_clear()
        return [*seen, fn(ONES, 5), outer(5) is inner(5), counts(inner)]

    as_plain(scenario)


def test_methods_classes_and_arguments_that_are_objects(as_plain):
    def scenario(compile):
        class Thing:
            def __init__(self, v):
                self.v = v

            @functools.lru_cache
            def times(self, n):
                return self.v * n

            @staticmethod
            @functools.cache
            def fixed(n):
                return [n]

        @functools.cache
        class Made:
            def __init__(self, n):
                self.n = n

        a, b = Thing(1), Thing(2)
        fn, give = compile(lambda o: (o.times(3), Thing.fixed(1) is o.fixed(1))), compile(lambda n: Made(n))
        seen = [fn(a), fn(b), fn(a), counts(Thing.times)]
        a.v = 5
        seen += [fn(a), give(1) is give(1), Made(1) is give(1), counts(Made)]
        Thing.times.cache_clear()
        return [*seen, fn(a), counts(Thing.times), counts(Thing.fixed)]

    as_plain(scenario)


def test_arrays_and_tensors_that_a_cache_holds(as_plain):
    torch = pytest.importorskip("torch")

    def scenario(compile):
        @functools.cache
        def buffer(n):
            return torch.zeros(n)

        @functools.cache
        def steps(n):
            return np.arange(n) * 2.0

        def add(x, y):
            held = buffer(2)
            held += x
            return held * 1, y + steps(2)

        fn, give = compile(add), compile(lambda n: buffer(n))
        x, seen = torch.ones(2), []
        seen += [fn(x, ONES) for _ in range(3)]
        steps(2)[:] = 7
        seen += [fn(x, ONES), buffer(2), give(2) is buffer(2), counts(buffer), counts(steps)]
        buffer.cache_clear()
        return [*seen, fn(x, ONES), buffer(2)]

    as_plain(scenario)


def test_a_cache_that_the_program_asks_and_clears(as_plain):
    def scenario(compile):
        @functools.cache
        def made(n):
            return object()

        def use():
            first = made(1)
            before = made.cache_info().misses
            made.cache_clear()
            return first is made(1), before, tuple(made.cache_info()), made.cache_parameters()["maxsize"]

        fn = compile(use)
        return [fn(), fn(), fn()]

    as_plain(scenario)


def test_patterns_are_those_that_re_keeps(as_plain):
    def scenario(compile):
        fn = compile(lambda: re.compile("a+b?c"))
        first = fn()
        seen = [fn() is first, re.compile("a+b?c") is first]
        re.purge()
        second = fn()
        return [*seen, second is first, re.compile("a+b?c") is second, fn() is second]

    as_plain(scenario)


def test_properties_that_are_computed_once(as_plain):
    def scenario(compile):
        calls = []

        class Thing:
            @functools.cached_property
            def value(self):
                calls.append(1)
                return [len(calls)]

        o, fn = Thing(), compile(lambda o: o.value)
        seen = [fn(o), fn(o) is o.value, len(calls)]
        del o.value
        seen += [fn(o), len(calls)]
        o.value = [9]
        return [*seen, fn(o), fn(o) is o.value]

    as_plain(scenario)
