"""Functions that compiled code computes by its own polynomials, against float64."""
import warnings

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
