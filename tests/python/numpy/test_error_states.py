"""Programs that enter np.errstate: what is inside is handled as it says, what is around it as before."""
import warnings

import numpy as np
import pytest

import tenon

A, B, ORDINARY = np.array([1.0, 2.0, 0.0, -3.0]), np.array([0.0, 1.0, 0.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
CALLS = ((A, B), (ORDINARY, ORDINARY), (B, A), (A[:3], B[:3]), (A, B))


def inside(a, b):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(a / b)


def before_and_after(a, b):
    before = a / (b + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = a / b
    return before, inner + 1, 1 / a, np.log(b)


def infinities_that_go_on(a, b):
    with np.errstate(all="ignore"):
        ratio = a / b
    return ratio - ratio, ratio.sum(), ratio.mean(), np.sqrt(ratio), np.maximum(ratio, 0), ratio > 1, np.cumsum(ratio), np.sort(ratio)


def unread(a, b):
    with np.errstate(divide="ignore"):
        1 / a
        np.log(b - 5)
    return a + 1


def casts(a, b):
    with np.errstate(invalid="ignore"):
        inner = np.log(a), (a * 1e300).astype(np.int32)
    return inner, b / a


def casts_that_overflow(a, b):
    with np.errstate(over="ignore", invalid="ignore"):
        inner = np.exp(a.astype(np.float32) * 500), (a * 1e300).astype(np.float32)
    return inner, (b * 1e300).astype(np.float32)


def nested(a, b):
    with np.errstate(all="ignore"):
        x = a / b
        with np.errstate(divide="warn"):
            y = b / a
        return x, y, np.sqrt(-a)


def integers(a, b):
    i, j = a.astype(int), b.astype(int)
    with np.errstate(divide="ignore"):
        inner = i // j
    return inner, (i + 5) % 3, i % j


def without_an_op(a, b):
    with np.errstate(invalid="ignore", divide="ignore"):
        inner = np.nanvar(a / b), np.corrcoef(a * 0, b)
    return inner, np.corrcoef(a * 0, b)


def constants(a, b):
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.log(np.zeros(3)), np.float64(1) / np.float64(0), np.array([0.0]) / 0
    return inner, a + b


def constants_outside(a, b):
    with np.errstate(divide="ignore"):
        inner = np.log(np.zeros(3))
    return inner, np.log(np.zeros(3)), a + b


def left_by_an_exception(a, b):
    try:
        with np.errstate(all="ignore"):
            a = a / b
            raise ValueError
    except ValueError:
        return a, 1 / b


def in_a_generator(a, b):
    def ratios():
        with np.errstate(all="ignore"):
            yield a / b
            yield b / a

    return list(ratios()), a + 1


def written(a, b):
    with np.errstate(all="ignore"):
        a /= b
    b *= 2
    return a + 0


def masked(a, b):
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.where(b != 0, a / b, 0)
    return np.divide(a, b, out=np.zeros_like(a), where=b != 0) + inner


def warned_by_python(a, b):
    with np.errstate(all="ignore"):
        return np.nanmax(np.where(a > 9, a, np.nan)), np.nanmin(np.where(a > b, a, np.nan)), a / b


@np.errstate(divide="ignore", invalid="ignore")
def decorated(a, b, *, factor=1):
    return a / b * factor


def calls_a_decorated_function(a, b):
    return decorated(a, b), decorated(a, b=b, factor=2), 1 / b


PROGRAMS = [inside, before_and_after, infinities_that_go_on, unread, casts, casts_that_overflow, nested, integers, without_an_op, constants,
            constants_outside, left_by_an_exception, in_a_generator, written, masked, warned_by_python, calls_a_decorated_function]


def said(fn, arguments):
    arguments = [argument.copy() for argument in arguments]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fn(*arguments)
    return result, arguments, sorted((str(w.message), w.lineno) for w in caught)


def compare(check, fn, compiled, lines=True):
    for arguments in CALLS:
        want, got = said(fn, arguments), said(compiled, arguments)
        check.same(got[:2], want[:2])
        assert got[2] == want[2] if lines else [m for m, _ in got[2]] == [m for m, _ in want[2]]


@pytest.mark.parametrize("fn", PROGRAMS)
def test_inside_and_around(check, fn):
    compare(check, fn, tenon.compile(fn))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("fn", PROGRAMS)
def test_backends_that_run_calls(check, fn):
    compare(check, fn, tenon.compile(fn, backend=lambda graph, _: graph.forward), lines=False)


@pytest.mark.parametrize("fn", [inside, masked, in_a_generator, written, constants, decorated])
def test_what_is_ignored_costs_no_second_run(check, fn):
    compare(check, fn, tenon.compile(fn))
    assert tenon.stats()["eager_fallbacks"] == 0


def test_the_calling_context_counts_around_it():
    compiled = tenon.compile(before_and_after)
    with np.errstate(all="ignore"):
        assert not said(compiled, (A, B))[2]
    assert said(compiled, (A, B))[2] == said(before_and_after, (A, B))[2] != []
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        compiled(ORDINARY * 0, ORDINARY)


@pytest.mark.parametrize("mode", ["raise", "print"])
def test_modes_that_do_more_than_warn(check, mode):
    def fn(a, b):
        try:
            with np.errstate(divide=mode):
                a = a / b
        except FloatingPointError as error:
            return str(error)
        return a + 1

    compare(check, fn, tenon.compile(fn))


def test_breaks_inside(check):
    def fn(a, b):
        with np.errstate(divide="ignore"):
            a = a / b
            tenon.graph_break()
            b = b / (a + 1)
            kept = np.geterr()["divide"]
        return a, b, kept, 1 / b, np.geterr()["divide"]

    compare(check, fn, tenon.compile(fn))


def test_breaks_inside_a_decorated_function(check):
    @np.errstate(all="ignore")
    def inner(a, k):
        logs = np.log(a) * k
        return logs if logs.sum() > 0 else logs + 1 / a

    def fn(a, b):
        return inner(a, 2), inner(b, k=3), 1 / b

    compare(check, fn, tenon.compile(fn))


STATE = np.errstate(all="ignore")


def test_a_state_that_is_older_is_entered_once(monkeypatch):
    def fn(a, b):
        with STATE:
            return a / b

    compiled = tenon.compile(fn)
    for _ in range(2):
        monkeypatch.setitem(globals(), "STATE", np.errstate(all="ignore"))
        assert not said(compiled, (A, B))[2]
        with pytest.raises(TypeError, match="twice"):
            compiled(A, B)
