"""Functions that compiled code computes by its own polynomials, against float64."""
import warnings
from fractions import Fraction

import numpy as np
import pytest

import tenon

TURNED = 131072.0  # the largest magnitude that is turned without the library


def errors(got, exact):
    """In units of the last place of the exact result."""
    return np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)


def compiled(fn, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of infinities
        return tenon.compile(fn, fullgraph=True)(x)


@pytest.mark.parametrize("fn", [np.sin, np.cos])
def test_sine_and_cosine(fn):
    quarters = (np.arange(-83000, 83000, dtype=np.float64) * (np.pi / 2)).astype(np.float32)  # where little is left of the argument
    patterns = np.arange(0, 2**32, 20011, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([quarters, np.nextafter(quarters, np.float32(np.inf)), patterns[np.isfinite(patterns)]])
    assert tenon.stats()["eager_fallbacks"] == 0
    got, exact = compiled(lambda a: fn(a), x), fn(x.astype(np.float64))
    found, near = errors(got, exact), np.abs(x) <= TURNED
    assert found[near].max() <= 1.6 and found[~near].max() <= 4, (found[near].max(), found[~near].max())


def test_sine_and_cosine_of_what_is_special():
    tiny = np.array([0.0, -0.0, 1e-45, -1e-45, 1e-38, -3e-39, TURNED, -TURNED, 3.0e38, np.nan], np.float32)
    sine, cosine = compiled(lambda a: (np.sin(a), np.cos(a)), tiny)
    np.testing.assert_array_equal(sine[:6], tiny[:6])
    assert (np.signbit(sine[:6]) == np.signbit(tiny[:6])).all() and (cosine[:6] == 1).all()
    np.testing.assert_allclose([sine[6:9], cosine[6:9]], [np.sin(tiny[6:9]), np.cos(tiny[6:9])], rtol=1e-6)
    assert np.isnan(sine[9]) and np.isnan(cosine[9])


@pytest.mark.parametrize("fn", [np.sin, np.cos])
def test_infinities_among_ordinary_numbers(fn):
    x = np.linspace(-3, 3, 67).astype(np.float32)
    x[[5, 40]] = np.inf, -np.inf
    with pytest.warns(RuntimeWarning, match=f"invalid value encountered in {fn.__name__}"):
        got = tenon.compile(lambda a: fn(a))(x)
    assert np.isnan(got[[5, 40]]).all() and np.isfinite(np.delete(got, [5, 40])).all()


@pytest.mark.parametrize("count", [40, 82, 255, 700, 5000])
def test_sums_over_outer_dimensions(count):
    x = np.random.default_rng(count).random((count, 5, 64), np.float32) + np.float32(0.5)
    for axis in (0, (0, 1)):
        got, exact = compiled(lambda a: (a * 2).sum(axis), x), (x.astype(np.float64) * 2).sum(axis)
        assert errors(got, exact).max() <= 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_powers_of_negative_numbers(dtype):
    rng = np.random.default_rng(0)
    x, y = (v.ravel().astype(dtype) for v in np.meshgrid(np.concatenate([np.arange(-12.0, 0) / 2, -5 * rng.random(40)]), np.arange(-9.0, 10)))
    got = compiled(lambda pair: np.power(pair[0], pair[1]), np.stack([x, y]))
    for a, b, power in zip(x, y, got):
        exact = Fraction(float(a)) ** int(b)
        nearest = dtype(float(exact))
        assert power == nearest if Fraction(float(nearest)) == exact else abs(Fraction(float(power)) - exact) <= Fraction(float(np.spacing(abs(nearest)))), (a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_what_is_special(dtype):
    special = np.array([0.0, -0.0, 1, -1, -2, 0.5, -0.5, np.inf, -np.inf, np.nan, -3, 2.5, -2.5, -1e30, 2**24 + 1, -(2**24 + 1), -1e-40], dtype)
    x, y = (v.ravel() for v in np.meshgrid(special, special))
    got = compiled(lambda pair: np.power(pair[0], pair[1]), np.stack([x, y]))
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    np.testing.assert_allclose(got, want, rtol=2 * np.finfo(dtype).eps)
    known = ~np.isnan(want)
    assert (np.signbit(got) == np.signbit(want))[known].all()


@pytest.mark.parametrize("base, exponent", [(-1.0, 0.5), (-1.0, 3.0), (-1.0, np.nan), (-np.inf, 0.5), (-np.inf, -3.0), (0.0, -1.0), (-0.0, -1.0), (-0.0, 0.5), (-8.0, 400.0)])
def test_powers_warn_as_numpys_do(base, exponent):
    function = tenon.compile(lambda x, y: np.power(x, y))
    said = []
    for fn in (np.power, function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fn(np.full(40, base), np.full(40, exponent))
        said.append([str(w.message) for w in caught])
    assert said[0] == said[1]
