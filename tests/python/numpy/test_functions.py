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


def outcome(fn, *args):
    try:
        return fn(*args)
    except Exception as error:
        return type(error).__name__, str(error)


def same_outcome(check, fn, *args):
    compiled = tenon.compile(fn)
    for _ in range(2):
        check.same(outcome(compiled, *args), outcome(fn, *args))


@pytest.mark.parametrize("dtype", [np.float32, "f8", int, bool, complex, np.uint8])
@pytest.mark.parametrize("casting", ["same_kind", "unsafe", "safe", "no"])
def test_the_dtype_that_a_ufunc_computes_with(check, dtype, casting):
    ints, floats, bools = np.arange(4), np.linspace(0.5, 2.5, 4, dtype="f4"), np.arange(4) > 1
    for ufunc in np.add, np.greater, np.logical_and, np.power, np.maximum:
        for other in 1, 1.5, floats[::-1].copy(), bools:
            for x in ints, floats, bools:
                same_outcome(check, lambda x, other: ufunc(x, other, dtype=dtype, casting=casting), x, other)
    for ufunc in np.sqrt, np.floor, np.isnan, np.rint, np.logical_not, np.sin:
        for x in ints, floats, bools:
            same_outcome(check, lambda x: ufunc(x, dtype=dtype, casting=casting), x)


def test_results_that_are_cast_to_an_output(check):
    def program(a, b, casting):
        out = np.zeros(a.shape, b.dtype)
        np.add(a, 1.5, out=out, casting=casting)
        return out

    for b in np.zeros(1), np.zeros(1, "f4"), np.zeros(1, int), np.zeros(1, "f2"):
        for casting in "unsafe", "same_kind", "safe":
            same_outcome(check, program, np.arange(3.0), b, casting)
    check(lambda a: np.add(a, 1.5, out=np.zeros(3, int), casting="unsafe") * 2, (np.arange(3.0),))


def test_a_dtype_leaves_a_call_in_the_graph(check):
    check(lambda a: np.add(a, 1, dtype=np.float64) * np.multiply(a, 255, dtype="f4"), (np.arange(4, dtype=np.uint8),))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("initial", [2.5, 3, True, np.float64(9)])
def test_first_values_of_extremes(check, initial):
    for x in np.arange(4), np.arange(4, dtype=np.uint8), np.arange(4) > 1, np.arange(4.0):
        same_outcome(check, lambda x: (np.max(x, initial=initial), x.min(initial=initial)), x)


@pytest.mark.parametrize("axis", [0, -1, (0,), (0, -1)])
def test_axes_of_what_has_none(check, axis):
    for fn in np.sum, np.any, np.max, np.nanmean, np.nanprod, np.count_nonzero, np.argmax, np.cumsum, np.sort, np.ptp, np.std, np.median:
        same_outcome(check, lambda x: fn(x, axis=axis), np.array(3.5))


@pytest.mark.parametrize("side", ["left", "right"])
def test_nan_stands_behind_all_numbers(check, side):
    values = np.array([1.0, np.inf, np.nan, -np.inf, 0.0])
    check(lambda s, v: np.searchsorted(s, v, side), (np.array([0.0, 1.0, np.inf, np.nan, np.nan]), values), (np.array([np.nan]), values))


def test_calls_that_numpy_refuses(check):
    same_outcome(check, lambda a, b: np.tensordot(a, b, 1), np.ones((4, 1)), np.ones((4, 1)))
    same_outcome(check, lambda a: np.array(a, dtype=np.float32, copy=False), np.ones(3))
    same_outcome(check, lambda a: np.average(a, axis=1), np.ones((0, 3)))
    same_outcome(check, lambda a: np.einsum("ii", a), np.ones((1, 4)))


@pytest.mark.parametrize(
    "fn",
    [
        lambda a, b: (np.max([a, b], axis=0), np.mean([a, b, [1, 2, 3]], axis=0), np.sum([a.sum(), b.sum(), 1]), np.dot([1, 2, 3], a)),
        lambda a, b: (np.add([a, b], 1), np.where(a > 1, [1, 2, 3], b), np.maximum(a, [[1], [2]]), np.median([a, b]), a * (1, 2, 3)),
        lambda a, b: (np.r_[0, a, b[:1]], np.c_[a, b], np.array(a, ndmin=3), np.array([a, b], ndmin=3), np.array(1.5, ndmin=1) + a),
        lambda a, b: (np.take(a, [0, -1]), np.outer([1, 2], b), np.linalg.norm([a, b]), np.clip(a, [0, 1, 2], 2)),
    ],
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_lists_stand_for_arrays(check, fn, dtype):
    a, b = np.arange(3).astype(dtype), np.array([2, 0, 1]).astype(dtype)
    check(fn, (a, b), (a[::-1], b[::-1]))


def test_lists_of_arrays_in_another_order(check):
    check(lambda a, b: (np.add([a, b], 1), np.max([a, b], axis=0), np.sqrt([a, b])), (np.ones((3, 4)).T, np.asfortranarray(np.ones((4, 3)))))


def test_sliding_windows(check):
    windows = np.lib.stride_tricks.sliding_window_view
    check(lambda a: windows(a, (2, 3)).mean((-2, -1)) + windows(a, 2, axis=0)[:, 2:].sum(-1), (np.arange(20.0).reshape(4, 5),), (np.arange(30.0).reshape(5, 6).T[::-1],))
    check(lambda a: (windows(a, 3), windows(a, 2)[::2], windows(a, (2, 2), axis=(0, 0))), (np.arange(7.0),))
    same_outcome(check, lambda a: windows(a, 9) + 1, np.arange(7.0))


def test_sliding_windows_are_views():
    windows = np.lib.stride_tricks.sliding_window_view

    def program(a):
        w = windows(a, 3)
        a[0] = 9
        b = a + 1
        return w, w.sum(-1), windows(b[::-1], 2)[1:], b

    compiled = tenon.compile(program)
    for _ in range(2):
        want, got = program(x := np.arange(7.0)), compiled(y := np.arange(7.0))
        np.testing.assert_equal(got, want)
        assert np.shares_memory(got[0], y) and np.shares_memory(got[2], got[3]) and not got[0].flags.writeable
    assert tenon.stats()["graph_breaks"] == 0
