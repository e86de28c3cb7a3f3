"""Programs that use one part of the language or library each: captured whole, twice in a row what Python gives."""
import types

import pytest

import control_cases
import generator_cases
import library_cases
import object_cases
from harness import Captured, Number, breaks
from state import alike

CASES = [
    pytest.param(function, id=function.__name__)
    for module in (control_cases, generator_cases, library_cases, object_cases)
    for function in vars(module).values()
    if isinstance(function, types.FunctionType) and function.__module__ == module.__name__
]


@pytest.mark.parametrize("program", CASES)
def test_program(program):
    a = Number(3.0)
    captured = Captured(program, (a,))
    for _ in range(2):
        alike(captured(a), program(a))


def test_a_cached_function_keeps_what_a_call_gives_it_and_gives_that_again():
    import functools

    @functools.lru_cache
    def cached(n):
        return [n]

    a = Number(3.0)
    filling = Captured(lambda a: (cached(2), a), (a,))
    made = filling(a)[0]
    assert made is cached(2) and not filling.check((a,))
    finding = Captured(lambda a: (cached(2), a), (a,))
    assert finding(a)[0] is finding(a)[0] is made and cached.cache_info().misses == 1


def test_a_class_that_leaves_the_call_breaks():
    def fn(a):
        class Local:
            pass

        return Local()

    breaks(fn, Number(3.0), reason="cannot be built again")


def test_iterators_that_are_older_than_the_call():
    def fn(it, pairs, a):
        first = next(it)
        rest = []
        for v in it:
            rest.append(v)
            if len(rest) == 2:
                break
        for at, (p, q) in pairs:
            rest.append((at, p * q))
        return first, rest, next(it, "end"), a

    def make():
        return iter([1, 2, 3, 4]), enumerate(zip((1, 2), [3, 4])), Number(2.0)

    captured = Captured(fn, make())
    mine, plain = make(), make()
    assert captured.check(mine)
    alike([captured(*mine), list(mine[0]), list(mine[1])], [fn(*plain), list(plain[0]), list(plain[1])])
    assert not captured.check((iter([1, 2, 3]), *make()[1:]))
    assert not captured.check((iter([1, 2, 5, 4]), *make()[1:]))
    assert not captured.check((make()[0], enumerate(zip((1, 2, 3), [3, 4, 5])), Number(2.0)))
