"""NumPy functions whose results differ from torch's of that name, or from another call of the same function."""
import operator

import numpy as np
import pytest

import tenon


def test_the_remainder_of_floats_has_the_sign_of_the_divisor(check):
    x = np.array([-3.0, -1.5, 0.0, -0.0, 1.5, 3.0])
    check(lambda a, b: (a % b, np.remainder(a, 1.5), 3.0 % b, np.signbit(a % b), np.signbit(a % -b)), (x, np.array([1.5, -1.5, 1.5, -1.5, -1.5, 1.5])))
    check(lambda a: np.signbit(a % 1.5), (np.arange(-3, 4),))


def test_the_square_of_bools(check):
    check(lambda a: (a**2, np.power(a, 2)), (np.array([True, False]),))


def test_products_of_vectors_along_the_last_dimension(check):
    a, b = np.arange(24.0).reshape(4, 6), np.arange(6.0, 30.0).reshape(4, 6)
    check(lambda x, y: (np.vecdot(x, y), np.linalg.vecdot(x, y[0]), np.vecdot(x[0], y[1])), (a, b), (a.astype(np.float32), b))


def test_a_product_over_all_dimensions_is_an_array(check):
    check(lambda x, y: (np.tensordot(x, y, 2), np.tensordot(x, y, 1)), (np.ones((3, 3)), np.arange(9.0).reshape(3, 3)))


def test_names_of_the_standard(check):
    def fn(x):
        return (np.clip(x, min=1, max=3), np.zeros_like(x, dtype="int32"), np.linalg.matrix_transpose(x), np.linalg.outer(x[0], x[1]),
                np.cumulative_sum(x, axis=1), np.linalg.matmul(x, x.T))  # fmt: skip

    graphs = check(fn, (np.arange(12.0).reshape(3, 4),))
    assert len(graphs) == 1


@pytest.mark.parametrize("name", ["ifloordiv", "ilshift", "imod", "ipow", "irshift", "ixor", "iadd"])
def test_operators_in_place_by_name(check, name):
    change = getattr(operator, name)

    def fn(a):
        kept = a
        a = change(a, 2)
        return a, kept

    check(fn, (np.arange(7),))
    assert len(tenon.explain(fn)(np.arange(7)).break_reasons) == 0


@pytest.mark.parametrize("fn", [np.linalg.inv, np.linalg.cholesky, lambda m: np.linalg.solve(m, m[0])])
def test_matrices_that_zeros_are_not(check, fn):
    def program(m):
        return fn(m) + 1

    m = np.array([[4.0, 1.0], [1.0, 3.0]])
    check(program, (m,))
    assert len(tenon.explain(program)(m).break_reasons) == 0
    with pytest.raises(np.linalg.LinAlgError):
        tenon.compile(program)(np.array([[0.0, 0.0], [0.0, 0.0]]))


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: np.vecdot(a, np.ones((3, 4))),
        lambda a: np.matmul(np.ones(3), a),
        lambda a: np.matmul(a, np.ones(4)),
        lambda a: np.where(a),
        lambda a: a.astype(np.float16),
        lambda a: np.nan_to_num(a),
    ],
)
def test_layouts_of_operands_with_more_dimensions_or_without_steps(check, fn):
    row, column = np.arange(4.0) - 1, np.arange(3.0)[:, None]
    check(fn, (np.broadcast_to(row, (3, 4)),), (np.broadcast_to(column, (3, 4)),), (np.asfortranarray(row + column),), ((row + column)[::-1, ::-1],), fallbacks=None)


@pytest.mark.parametrize("fn", [lambda a: np.roll(a, 1, 0), lambda a: np.roll(a, (1, -1), (0, 1)), lambda a: np.mean(a, axis=0), lambda a: np.std(a, axis=0, keepdims=True)])
def test_an_axis_that_is_not_there_raises(fn):
    with pytest.raises(np.exceptions.AxisError):
        tenon.compile(fn)(np.array(3.0))


def test_functions_that_give_arrays_without_dimensions(check):
    a = np.array(3.0)
    check(lambda a: (np.isin(a, [1.0, 3.0]), np.isin(a[()], a)), (a,))
    check(lambda a: np.unique(a, return_inverse=True), (a,), fallbacks=None)
