"""NumPy's names for sorting, searching, products and arrangements, against NumPy."""
import numpy as np
import pytest
from probe import Refused, compare


def check(name, *args, **kwargs):
    return compare(name, list(args), kwargs, 8)


def n(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed + sum(shape))
    return rng.integers(-9, 10, shape).astype(dtype) if "int" in dtype else rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int8"])
def test_sorting_and_searching(dtype):
    x = n(4, 6, dtype=dtype)
    check("numpy.sort", x), check("numpy.sort", x, 0), check("numpy.sort", x, axis=None), check("numpy.argsort", x, kind="stable"), check("numpy.argsort", x, 0, stable=True)
    for side in ("left", "right"):
        check("numpy.searchsorted", np.sort(n(9, dtype=dtype)), x, side=side)
    check("numpy.isin", x, x[0]), check("numpy.take_along_axis", x, np.array([[0, -1], [1, 2], [3, 4], [-6, 5]]), 1)


def test_nan_is_sorted_last():
    x = np.array([1.0, np.nan, -np.inf, np.inf, np.nan, 0.0])
    check("numpy.sort", x), check("numpy.argsort", x, kind="stable")


def test_the_order_of_equal_elements_is_not_made_up():
    with pytest.raises(Refused, match="stable"):
        check("numpy.argsort", n(5))


def test_products():
    check("numpy.einsum", "ij,jk->ik", n(3, 4), n(4, 5)), check("numpy.einsum", "ij,kj", n(3, 4, dtype="int32"), n(5, 4, dtype="int32"))
    check("numpy.tensordot", n(2, 3, 4), n(4, 3), axes=([1, 2], [1, 0])), check("numpy.tensordot", n(3, 4), n(4, 5), 1), check("numpy.kron", n(2, 3), n(3, 2, dtype="float32"))


def test_arrangements():
    x = n(3, 4)
    check("numpy.diag", x, 1), check("numpy.diag", n(4), -2), check("numpy.diagflat", x), check("numpy.rot90", x), check("numpy.rot90", n(2, 3, 4), -1, (1, 2))
    check("numpy.heaviside", n(5, dtype="int32"), 0.5), check("numpy.heaviside", np.array([np.nan, -1, 0, 2]), 0.25)
