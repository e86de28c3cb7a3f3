"""NumPy's numbers and small arrays that are made of sizes: Python has their elements, and one graph serves all sizes."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import tenon

SIZES = (5, 8, 13, 7, 9, 11, 6, 10, 12, 15, 21, 33)


def of_written(a):
    places = np.array(a.shape)
    places[0] = 3
    return a[: places[0]]


def cropped(a):
    middle, half = np.array(a.shape) // 2, np.asarray([2, 1])
    low = middle - half
    return a[low[0] : low[0] + 4, low[1] :]


FUNCTIONS = {
    "scalar": lambda a: np.float64(len(a)) * a,
    "scalar_of_narrower_type": lambda a: np.float32(len(a)) * a,
    "scalar_of_bool": lambda a: np.bool_(len(a)) * a,
    "scalar_beside_narrow": lambda a: np.int64(len(a)) * a.astype(np.float32),
    "place": lambda a: a[np.int64(len(a) - 1)],
    "slice": lambda a: a[: np.int64(len(a)) // 2],
    "size": lambda a: np.zeros(np.int64(len(a))) + a[:, 0],
    "sizes": lambda a: np.ones((np.int64(len(a)), np.int64(2))) * a,
    "reshaped": lambda a: a.reshape(-1, np.int64(len(a))),
    "int": lambda a: a[: int(np.int64(len(a))) // 2],
    "float": lambda a: a * float(np.int64(len(a))),
    "item": lambda a: a[: np.int64(len(a) // 2).item()],
    "floor": lambda a: a[: int(np.floor(len(a) / 2))],
    "ceil": lambda a: a[: int(np.ceil(len(a) * 0.3))],
    "rint": lambda a: a[: int(np.rint(len(a) * 0.7))],
    "root": lambda a: np.zeros((int(np.sqrt(len(a))), 2)) + a[0],
    "power_of_two": lambda a: np.zeros(int(2 ** np.ceil(np.log2(len(a))))) + a[0, 0],
    "cast": lambda a: a[: np.ceil(len(a) / 3).astype(int)],
    "shape": lambda a: a[: np.array(a.shape)[0] // 2],
    "centre": cropped,
    "product": lambda a: a.ravel()[: np.prod(a.shape) // 3],
    "sum": lambda a: a.ravel()[: np.sum(a.shape)],
    "extremes": lambda a: (a[: np.minimum(len(a), 7)], np.maximum(len(a), 9) * a),
    "branch": lambda a: a * 2 if np.int64(len(a)) > 2 else a,
    "least": lambda a: sum(a[i] for i in range(min(np.int64(len(a)), 3))),
    "negative": lambda a: a[-np.int64(2) :] + np.negative(np.int64(len(a))),
    "remainder": lambda a: a[: len(a) - np.int64(len(a)) % 4],
    "operators": lambda a: a[: 1 + np.int64(len(a)) // 2] * (2 / np.int64(len(a))) * (7 - np.float64(len(a) / 2)),
    "branch_on_floats": lambda a: a * 2 if 1.5 * np.float64(len(a)) - 1 > 2 else a,
    "written": of_written,
    "wraps": lambda a: (np.array([len(a)]) * np.int64(2**62))[0] + a,
    "linspace": lambda a: np.linspace(0, len(a), 5) + a.sum(),
    "linspace_both": lambda a: np.linspace(-len(a), len(a) - 1, len(a)) + a[:, 0],
    "interp": lambda a: np.interp(np.linspace(0, len(a) - 1, 50), np.arange(len(a)), a[:, 0]),
    "fftfreq": lambda a: np.fft.fftfreq(len(a))[:, None] * a,
    "split": lambda a: np.split(a, [len(a) // 2]),
    "array_split": lambda a: np.array_split(a, [2, len(a) - 1]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_graph_for_all_sizes(name):
    """Values, dtypes and classes of NumPy, from at most two graphs and a break of the first, which knows one size."""
    fn = FUNCTIONS[name]
    compiled = tenon.compile(fn)
    for size in SIZES:
        a = np.random.default_rng(size).random((size, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, want = compiled(a), fn(a)
        assert type(got) is type(want)
        for mine, eager in zip(got, want, strict=True) if isinstance(want, (list, tuple)) else [(got, want)]:
            assert (type(mine), mine.dtype, mine.shape) == (type(eager), eager.dtype, eager.shape)
            np.testing.assert_allclose(mine, eager, rtol=1e-12, atol=1e-12)
    assert tenon.stats()["recompiles"] <= 2, tenon.stats()
    assert tenon.stats()["eager_fallbacks"] == 0


@pytest.mark.parametrize("number", [np.int32(3), np.uint8(3), np.int64(3), np.float32(3), np.bool_(True)])
def test_what_is_made_of_numbers_of_numpy_has_their_dtype(number):
    """Also where they stand for sizes or ends."""

    def fn(a):
        kind = type(number)
        return np.full(3, kind(3)), np.arange(kind(1)) if kind is not np.bool_ else a, np.array(kind(2)), np.asarray([kind(1), kind(0)]), np.full(2, kind(len(a)))

    compiled = tenon.compile(fn)
    for size in SIZES[:3]:
        a = np.ones(size)
        for got, want in zip(compiled(a), fn(a), strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("values", [(0.5, 1.5, 2.5, -0.5), (7.0, 2.0, 9.0, 1e300)])
def test_numbers_of_floats(values):
    """Floats that vary: NumPy's functions of them decide sizes and branches."""
    a = np.arange(12.0)

    def fn(a, x):
        count = int(np.clip(np.floor(x), 1, 5))
        return (a * np.float64(x))[:count] if np.abs(x) < 3 else a + np.sqrt(np.abs(x))

    compiled = tenon.compile(fn)
    for value in values * 2:
        np.testing.assert_array_equal(compiled(a, value), fn(a, value))


def test_an_integer_of_a_computed_float():
    """NumPy makes it, which says what it is of no number."""
    compiled = tenon.compile(lambda a: np.int64(a.max()) + a, fullgraph=True)
    for a in (np.array([1.0, 2.0]), np.array([4.7, 2.0]), np.array([-3.5, -9.0])):
        np.testing.assert_array_equal(compiled(a), np.int64(a.max()) + a)
    with pytest.warns(RuntimeWarning, match="invalid value encountered in cast"):
        compiled(np.array([np.nan, 2.0]))
