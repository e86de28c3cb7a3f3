"""Python's numbers that vary beside scalars of NumPy: operators give scalars of NumPy, functions get the number that it is in each call."""
import numpy as np
import pytest

import tenon

ARRAY = np.array([1.5, 2.0, 3.0])
NARROW = ARRAY.astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("value", [-0.5, 0.5, -1.0])
def test_a_constant_scalar_on_the_left_of_a_comparison(check, value, dtype):
    check(lambda a: (dtype(value) < a * -1, dtype(value) >= a, dtype(value) > -a, np.log(np.float64(0.3)) < -a), (ARRAY * 0.1,))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize(
    "fn",
    [
        lambda n: n + np.int64(1),
        lambda n: np.int64(2) ** n,
        lambda n: n / np.float32(2),
        lambda n: n * np.bool_(True),
        lambda n: np.float32(5) * n,
        lambda n: np.int64(2) > n,
        lambda n: n == np.float32(2),
        lambda n: sum([np.float64(3), n]),
        lambda n: np.trace([[n, 1], [1, n]]),
        lambda n: np.bincount([n, 1]),
        lambda n: np.expand_dims(n, 0),
        lambda n: np.squeeze(n) * 2,
        lambda n: np.tile(n, 2),
        lambda n: np.repeat(n, 2),
    ],
)
def test_ints_that_vary(check, fn):
    check(fn, (1,), (2,), (3,), (5,), fallbacks=None)


@pytest.mark.parametrize(
    "fn",
    [
        lambda s: np.float32(5) * s,
        lambda s: s - np.float32(5),
        lambda s: np.float32(0.5) < s,
        lambda s: np.bool_(s > 1) == 1,
        lambda s: np.array([s, -NARROW.mean()]),
        lambda s: np.hstack([s, NARROW]),
        lambda s: np.where(NARROW > 2, NARROW, s),
        lambda s: np.where(NARROW > 2, s, np.float16(2)),
        lambda s: np.clip(NARROW, s, 3),
        lambda s: np.clip(s, np.float32(-0.5), NARROW.max()),
        lambda s: np.dot(NARROW, s),
        lambda s: np.outer(NARROW, s),
        lambda s: np.append(NARROW, s),
        lambda s: np.einsum(",i->i", s, NARROW),
        lambda s: np.max(NARROW, initial=s),
    ],
)
def test_floats_that_vary(check, fn):
    check(fn, (0.3,), (2.5,), (3.0,), (0.1,), fallbacks=None)


def test_a_handler_gets_no_error_of_a_number_that_stands_for_another(check):
    def fn(s):
        try:
            return np.float32(0.5) > s
        except TypeError as error:
            return str(error)

    check(fn, (0.2,), (0.3,), (0.7,), fallbacks=None)


def test_numbers_of_elements(check):
    def fn(a):
        total = float(a.sum())
        return np.float64(3) + total, total < np.float32(7), np.array([a[0], total]), np.isclose(3.0, 3.0) == int(total)

    check(fn, (NARROW,), (NARROW * 0.1,), fallbacks=None)


@pytest.mark.parametrize("kind", [float, int])
def test_an_array_of_one_element_is_what_numpy_makes_of_it(check, kind):
    def fn(a):
        try:
            return kind(a[:1] * 2)
        except TypeError as error:
            return str(error)

    check(fn, (ARRAY,), fallbacks=None)


@pytest.mark.parametrize("number", [0.3, 0.1, 0.29])
def test_numbers_beside_half_floats(number):
    def run(a):
        n = number
        return a > n, a == n, n >= a, a % n, np.fmod(a, n), a // n, a + n, a - n, n - a, a * n, a / n, np.maximum(a, n), (a + 1) ** n

    a = np.array([1, 0.5, 0.3, 0.6, 0.1, -0.5, 0.29], np.float16)
    for got, want in zip(tenon.compile(run)(a), run(a)):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "fn",
    [
        lambda s: (np.transpose(s), np.reshape(s, ()), np.imag(s), np.real(s), np.permute_dims(s, ()), np.squeeze(s), np.ravel(s)),
        lambda s: (s[...], s[()], s[None], s.T, s.copy(), s.astype("f4"), s.reshape(1), s.repeat(2), s.clip(0, 1)),
        lambda s: (np.broadcast_arrays(s, np.array(1)), np.real_if_close(s), np.asarray(s), np.full_like(s, 2), np.stack([s, s])),
        lambda s: hasattr(s, "dot"),
    ],
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?"])
def test_what_takes_a_scalar_says_whether_it_gives_one(check, fn, dtype):
    a = np.array([0.3, 0.9, 2.5]).astype(dtype)
    check(lambda a: fn(a.max()), (a,))
    check(lambda a: fn(a[1]), (a,))
    check(fn, (a[1],))


@pytest.mark.parametrize("use", [
    lambda a: ((a[0] == 1) is np.True_, np.all(a > 0) is np.True_, (a[0] > 5) is np.False_, np.True_ is (a[1] < 9)),
    lambda a: ((a[0] == 1) is not np.True_, (a[0] == 1) is (a[1] == 2), np.any(a > 9) is np.isnan(a[0])),
    lambda a: ((a[0] == 1) is True, (a[0] > 5) is False, bool(a[0] == 1) is True, a.any() is np.bool_(True)),
    lambda a: (np.logical_not(a[0] > 5) is np.True_, (a[0] > 0) & (a[1] > 0) is np.True_, ~(a[0] > 0) is np.False_, np.array_equal(a, a) is True),
    lambda a: (a[0] is a[0], a[0] is np.float64(1), (a > 0)[0] is np.True_, "yes" if (a[0] == 1) is np.True_ else "no"),
])
def test_identity_of_booleans(use):
    compiled = tenon.compile(use)
    for array in (np.array([1.0, 2.0]), np.array([7.0, 2.0]), np.array([1.0, 2.0])):
        assert compiled(array) == use(array)
