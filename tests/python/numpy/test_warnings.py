"""NumPy's floating-point errors: each RuntimeWarning that plain execution gives is given, and no other; np.errstate is obeyed."""
import warnings

import numpy as np
import pytest

import tenon

POSITIVE = np.linspace(0.1, 0.9, 37)


def messages(fn, *arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fn(*arguments)
    return sorted((str(w.message), w.lineno, w.filename) for w in caught), result


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: 1 / (a - a[0]),
        lambda a: (a - a) / (a - a),
        lambda a: np.exp(a * 1000),
        lambda a: np.expm1(a * 1000),
        lambda a: np.log(a - a),
        lambda a: np.log(-a),
        lambda a: np.log1p(a - 3),
        lambda a: np.sqrt(-a),
        lambda a: (a * 1e200) ** 3,
        lambda a: (a - a) ** -1.0,
        lambda a: (-a) ** 0.5,
        lambda a: np.arcsin(a + 2),
        lambda a: np.arctanh(a * 0 + 1),
        lambda a: np.sinh(a * 1e4),
        lambda a: np.sin(a * np.inf),
        lambda a: a % (a - a),
        lambda a: a // (a - a),
        lambda a: a * 1e308 * 100,
        lambda a: ((a + 1) * 1e308).sum(),
        lambda a: a * np.inf - a * np.inf,
        lambda a: (a * 1e300).astype(np.float32),
        lambda a: np.exp(a.astype(np.float32) * 500),
        lambda a: np.dot(a * 1e200, a * 1e200),
        lambda a: np.where(a > 0.5, a, np.log(a - 0.5)),
        lambda a: np.arange(1, 5) // np.zeros(4, int) + a[:4].astype(int),
        lambda a: a.astype(int) % (a * 0).astype(int),
        lambda a: (a * np.inf).astype(np.int64),
        lambda a: (a * 1e30).astype(np.int32),
        lambda a: np.log(a.astype(np.float32) * 0),
        lambda a: np.log(-a.astype(np.float32)),
        lambda a: np.reciprocal((a * 0).astype(int)),
        lambda a: np.linalg.det(a[:4].reshape(2, 2) * 1e200),
        lambda a: (np.log(a - a), a + 1)[1],
        lambda a: np.nanmax(np.where(a > 2, a, np.nan)),
        lambda a: np.log(np.array(0.0)) + a,
        lambda a: np.array(1.0) / np.array(0.0) + a,
        lambda a: np.nanmin(np.where(np.arange(37)[:, None] > 0, a, np.nan), axis=1),
    ],
)
def test_what_numpy_warns_of(check, fn):
    compiled = tenon.compile(fn)
    want, expected = messages(fn, POSITIVE)
    assert want
    for _ in range(2):
        got, result = messages(compiled, POSITIVE)
        assert got == want
        check.same(result, expected)
    with np.errstate(all="ignore"):
        assert messages(compiled, POSITIVE)[0] == messages(fn, POSITIVE)[0]
        check.same(compiled(POSITIVE), expected)


@pytest.mark.parametrize("size", [1, 3, 16, 37, 1 << 18])
def test_no_warning_and_no_fallback_for_ordinary_numbers(check, size):
    def fn(a, b):
        return np.exp(-a) / b + np.log(b) + np.sqrt(a) * b**1.5, (a / b).sum(), np.where(a > b, a / b, 0.0)

    def integers(i, j):
        return i // j, i % j, (i / j).astype(np.int32), np.float32(2) * i.astype(np.float64)

    ones = np.arange(1, size + 1)
    whole = tenon.compile(integers)
    assert not messages(whole, ones, ones[::-1].copy())[0]
    check.same(whole(ones, ones[::-1].copy()), integers(ones, ones[::-1].copy()))
    a, b = np.linspace(0.5, 2, size), np.linspace(1, 3, size)
    compiled = tenon.compile(fn)
    for _ in range(2):
        got, result = messages(compiled, a, b)
        assert not got
        check.same(result, fn(a, b))
    assert tenon.stats()["eager_fallbacks"] == 0


def test_no_warning_of_zeros_that_meet(check):
    check(lambda a, b: np.hypot(a, b), (np.zeros(5), np.zeros(5)), (np.full(5, 5e-324), np.zeros(5)), (np.full(5, 3e-310, "f8"), np.full(5, 4e-310)))
    check(lambda a, b: np.hypot(a, b), (np.zeros(5, "f4"), np.zeros(5, "f4")), (np.full(5, 3e-42, "f4"), np.full(5, 4e-42, "f4")))


def placed(x, values, *place):
    result = np.zeros_like(x)
    result[place] = values
    return result


IN_PARTS = {
    "slice": lambda x: placed(x, 0.5 / x[1:, 1:], slice(1, None), slice(1, None)),
    "row": lambda x: placed(x, np.log(x[5]), 5),
    "inside": lambda x: placed(x, x[1:-1, 1:-1] ** -0.5, slice(1, -1), slice(1, -1)),
    "roots": lambda x: placed(x, np.sqrt(x[2:] - 1) + np.arccosh(x[2:]) / np.arctanh(x[2:] / 3), slice(2, None)),
    "concatenated": lambda x: np.concatenate([1 / x, np.log(x - 0.5)]),
    "stacked": lambda x: np.stack([1 / x, np.log10(x), x % (x - 0.5)], axis=2),
    "padded": lambda x: np.pad(1 / x, 1),
    "sinc": lambda x: np.sinc(x - x[0, 0]),
}


@pytest.mark.parametrize("name", IN_PARTS)
def test_neither_for_ordinary_numbers_in_parts(check, name):
    """Around a part the kernels compute too, and raise nothing there; what is raised within it is told."""
    fn, x = IN_PARTS[name], np.random.default_rng(0).uniform(1, 2, (40, 50))
    compiled = tenon.compile(fn)
    for _ in range(2):
        got, result = messages(compiled, x)
        assert not got
        check.same(result, fn(x))
    assert tenon.stats()["eager_fallbacks"] == 0
    x[5, 7] = 0
    assert messages(compiled, x)[0] == messages(fn, x)[0]


def test_one_element_among_many_threads(check):
    a = np.ones(1 << 20)
    compiled = tenon.compile(lambda a: 1 / a)
    assert not messages(compiled, a)[0]
    a[-1] = 0
    assert [text for text, *_ in messages(compiled, a)[0]] == ["divide by zero encountered in divide"]
    a[-1] = 1
    assert not messages(compiled, a)[0]


def test_nothing_is_written_before_a_warning_is_given(check):
    def fn(a, b):
        a += 1
        a /= b
        return a

    compiled = tenon.compile(fn)
    given, plain = np.ones(3), np.ones(3)
    for b in (np.ones(3), np.array([1.0, 0.0, 2.0]), np.ones(3)):
        want = messages(fn, plain, b)
        got = messages(compiled, given, b)
        assert [m[0] for m in got[0]] == [m[0] for m in want[0]]
        check.same(given, plain)


def test_errstate(check):
    compiled, ok, zero = tenon.compile(lambda a, b: a / b), np.ones(3), np.zeros(3)
    check.same(compiled(ok, ok), ok)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        compiled(ok, zero)
    heard = []
    with np.errstate(divide="call", call=lambda kind, flag: heard.append(kind)):
        compiled(ok, zero)
    assert heard == ["divide by zero"]
    with np.errstate(under="warn"):
        assert [text for text, *_ in messages(compiled, ok * 1e-200, ok * 1e200)[0]] == ["underflow encountered in divide"]
        low = np.full(64, -200, np.float32)
        assert [text for text, *_ in messages(tenon.compile(np.exp), low)[0]] == ["underflow encountered in exp"]


@pytest.mark.parametrize("fn", [lambda a: a[:0].mean(), lambda a: np.var(a[:0]), lambda a: np.std(a[:1], ddof=1)])
def test_statistics_of_too_few(fn):
    want, _ = messages(fn, POSITIVE)
    compiled = tenon.compile(fn)
    assert want
    for _ in range(2):
        assert messages(compiled, POSITIVE)[0] == want


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "fn",
    [
        lambda a: a > 0.5,
        lambda a: np.maximum(a, 0),
        lambda a: np.minimum(a, a[::-1]),
        lambda a: np.where(a <= 2, a, -a),
        lambda a: (a.max(), a.min(), a.argmax()),
        lambda a: np.clip(a, 0, 1),
        lambda a: np.sign(a),
        lambda a: np.sort(a),
        lambda a: np.heaviside(a, 0.5),
        lambda a: a[a >= 1],
    ],
)
def test_comparing_nans_runs_once(fn, dtype):
    values = np.array([1, np.nan, -2, np.inf, 0, np.nan, 3] * 9, dtype)
    want = fn(values)
    compiled = tenon.compile(fn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            np.testing.assert_equal(compiled(values), want)
    assert tenon.stats()["eager_fallbacks"] == 0


def test_exponentials_of_nans_run_once():
    values = np.array([1, np.nan, -2, np.inf, 0, -np.inf] * 9, "float32")
    compiled = tenon.compile(np.exp)
    np.testing.assert_allclose(compiled(values), np.exp(values), rtol=1e-6)
    assert tenon.stats()["eager_fallbacks"] == 0


@pytest.mark.parametrize("fn", [lambda a, b: a // b, lambda a, b: a % b, lambda a, b: np.fmod(a, b)])
def test_integers_divided_by_bools(fn):
    a, b = np.array([1, 2, 3], "int8"), np.array([True, True, True])
    compiled = tenon.compile(fn)
    np.testing.assert_equal(compiled(a, b), fn(a, b))
    assert tenon.stats()["eager_fallbacks"] == 0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        compiled(a, ~b)


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: np.nanvar(np.where(a > 2, a, np.nan)) * 2,
        lambda a: np.nanmedian(np.where(a > 2, a, np.nan)) * 2,
        lambda a: np.polyfit(a * 0 + 1, a, 2) * 2,
        lambda a: a[:0].astype(np.complex64).mean() * 2,
        lambda a: a[:0].astype(np.complex64).var() * 2,
        lambda a: np.trace(a[:36].reshape(6, 6).astype(np.complex64), dtype="float64") * 2,
    ],
    ids=["nanvar", "nanmedian", "polyfit", "mean_of_nothing", "var_of_nothing", "cast"],
)
def test_what_functions_without_an_op_warn_of(check, fn):
    compiled = tenon.compile(fn)
    want, expected = messages(fn, POSITIVE)
    filters = list(warnings.filters)
    assert want
    for _ in range(3):
        got, result = messages(compiled, POSITIVE)
        assert got == want
        check.same(result, expected)
    assert warnings.filters == filters


def test_operators_of_constants_warn_at_every_call(check):
    def fn(a):
        return np.float64(a.size) / 0 + a

    compiled = tenon.compile(fn)
    want, expected = messages(fn, POSITIVE)
    assert want
    for _ in range(3):
        got, result = messages(compiled, POSITIVE)
        assert got == want
        check.same(result, expected)


def test_functions_of_constants_warn_at_every_call():
    def program(a):
        return a + np.cov(True), np.maximum(a, 0, np.empty(3)), np.histogram(True, 3)[0]

    compiled = tenon.compile(program)
    for _ in range(3):
        said = []
        for fn in program, compiled:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fn(np.ones(3))
            said.append(sorted(str(w.message) for w in caught))
        assert said[0] == said[1]


@pytest.mark.parametrize("fn", [np.cumsum, np.cumprod])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_accumulations_that_overflow_on_the_way(fn, dtype):
    most = np.finfo(dtype).max
    x = np.array([most / 2, most, -most], dtype)
    with pytest.warns(RuntimeWarning, match="overflow"):
        want = fn(x)
    with pytest.warns(RuntimeWarning, match="overflow"):
        got = tenon.compile(lambda x: fn(x))(x)
    assert np.array_equal(got, want)


@pytest.mark.parametrize("fn", [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: -a, lambda a, b: abs(a), lambda a, b: a // b, lambda a, b: (1 - a, 3 * a, a + 1),
    lambda a, b: (np.array(a) + np.array(a), np.add(a, b), a << 2, a ** 2), lambda a, b: np.array([a, b])[0] * b,
], ids=["add", "sub", "mul", "neg", "abs", "floor_divide", "numbers", "arrays", "element"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_integer_scalars_that_overflow_warn_and_arrays_do_not(fn, dtype):
    most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
    compiled = tenon.compile(fn)
    for a, b in ((5, 3), (most, 1), (least, most), (least, max(-1, least)), (most, most), (2, 9)):
        a, b = np.array([a, b], dtype)
        (warned, want), (warned_too, got) = messages(fn, a, b), messages(compiled, a, b)
        np.testing.assert_equal(got, want)
        assert warned_too == warned
