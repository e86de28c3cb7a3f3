"""Writes under masks of what is computed of elements under masks: of one mask, of several, and of masks that change."""
import warnings

import numpy as np
import pytest

import tenon


def square_and_add(a, b, m):
    a[m] = a[m] * a[m] + b[m]


def update_in_place(a, b, m):
    a[m] += 1
    b[m] *= a[m]


def iterate(a, b, m):
    for _ in range(5):
        m = m & (np.abs(a) <= 2)
        a[m] = a[m] ** 2 + b[m]


def write_columns(a, b, m):
    rows = m.any(axis=1)
    a[:, rows[: a.shape[1]]] = b[:, rows[: a.shape[1]]]


def scaled_columns(a, b, m):
    columns = m[0]
    a[:, columns] = b[:, :1] * a[:, columns] + 1


def read_besides(a, b, m):
    taken = a[m] * 2
    a[m] = taken
    return taken.sum(), taken


def under_another_mask(a, b, m):
    a[m] = b[m[::-1]]


def under_a_mask_that_changed(a, b, m):
    taken = a[m]
    m = m.copy()
    m[:] = m[::-1].copy()
    a[m] = taken + b[m]


def in_order(a, b, m):
    a[m] = a[m][::-1]


WRITES = [square_and_add, update_in_place, iterate, write_columns, scaled_columns, read_besides, under_another_mask, under_a_mask_that_changed, in_order]


def arguments(dtype, chosen):
    rng = np.random.default_rng(3)
    a, b = (np.round(4 * rng.random((48, 48)) - 2, 2) for _ in range(2))
    if np.dtype(dtype).kind == "c":
        a, b = a + 1j * b, b - 1j * a
    mask = {"none": np.zeros, "all": np.ones}[chosen]((48, 48), dtype=bool) if chosen != "some" else rng.random((48, 48)) < 0.4
    return a.astype(dtype), b.astype(dtype), mask


def check_alike(got, want):
    """To the bit; complex products, which NumPy rounds as the processor at hand does, to the last ones."""
    if want.dtype.kind == "c":
        np.testing.assert_allclose(got, want, rtol=1e-13, strict=True)
    else:
        np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("chosen", ["some", "all", "none"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.complex128])
@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_under_a_mask_is_what_numpy_writes(write, dtype, chosen):
    compiled = tenon.compile(write)
    for _ in range(2):
        mine, judge = arguments(dtype, chosen), arguments(dtype, chosen)
        got, want = compiled(*mine), write(*judge)
        for one, other in zip(mine, judge, strict=True):
            check_alike(one, other)
        if want is not None:
            np.testing.assert_allclose(got[0], want[0], rtol=1e-6 if dtype is np.float32 else 1e-12)
            check_alike(got[1], want[1])


def test_what_is_read_under_one_mask_has_one_size():
    compiled = tenon.compile(iterate)
    compiled(*arguments(np.complex128, "some"))
    assert (tenon.stats()["graphs"], tenon.stats()["graph_breaks"]) == (1, 0)


def inverted(a):
    m = a != 0
    a[m] = 1 / a[m]
    return a


def test_elements_that_a_mask_leaves_out_raise_no_warning():
    a = np.arange(-40.0, 40.0).reshape(8, 10)
    compiled = tenon.compile(inverted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            np.testing.assert_array_equal(compiled(a.copy()), inverted(a.copy()), strict=True)


@pytest.mark.parametrize("shape", [(9, 10, 20), (1, 10, 20), (3, 4, 10, 20)])
@pytest.mark.parametrize("count", [1, 2, 30])
def test_elements_behind_other_dimensions_lie_as_numpy_lays_them(shape, count):
    def behind(a, m):
        return a[..., m] if a.ndim == 4 else a[:, m]

    a, m = np.random.default_rng(5).random(shape), np.arange(200).reshape(10, 20) < count
    compiled = tenon.compile(behind)
    for _ in range(2):
        got, want = compiled(a, m), behind(a, m)
        np.testing.assert_array_equal(got, want, strict=True)
        assert got.strides == want.strides


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_rows_that_vary_before_a_mask_lie_as_numpy_lays_them(dtype):
    def fn(a, m, i):
        return a[i % 2 :, m]

    a, m = np.arange(10.0).reshape(2, 5).astype(dtype), np.array([True, False, True, False, False])
    compiled = tenon.compile(fn)
    for i in (0, 1, 2, 3, 4):  # captured where there is one row
        got, want = compiled(a, m, i), fn(a, m, i)
        np.testing.assert_array_equal(got, want, strict=True)
        assert got.strides == want.strides


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("read", [
    lambda a, m: a[:, m], lambda a, m: a[0:, a[0, :, 0].real > 0], lambda a, m: a[:, np.nonzero(m)[0]], lambda a, m: a[:, m, :1], lambda a, m: a[..., m[:2]], lambda a, m: a[:, m] * 2 + 1,
], ids=["mask", "comparison", "places", "slice behind", "last", "computed"])
def test_complex_elements_behind_other_dimensions_lie_as_numpy_lays_them(read, dtype):
    rng = np.random.default_rng(0)
    a, m = (rng.normal(size=(2, 5, 2)) + 1j).astype(dtype), np.array([True, False, True, True, False])
    compiled = tenon.compile(read)
    for _ in range(3):
        got, want = compiled(a, m), read(a, m)
        assert got.strides == want.strides
        np.testing.assert_array_equal(got, want)


def test_many_complex_elements_are_written_at_places():
    def write(z, i, w):
        z[i] = w * 2
        return z

    z, w, i = np.zeros(5000, dtype=complex), np.arange(2000) * (1 + 2j), np.random.default_rng(7).permutation(5000)[:2000]
    np.testing.assert_array_equal(tenon.compile(write)(z.copy(), i, w), write(z.copy(), i, w), strict=True)
    assert tenon.stats()["graph_breaks"] == 0


PLACES = {
    "mask": lambda a: (a[:, 0] > 0, 0),
    "mask from behind": lambda a: (a[:, 0] > 0, -1),
    "number first": lambda a: (1, a[0] > 0),
    "places": lambda a: (np.array([0, 2]), 1),
    "places found": lambda a: (np.nonzero(a[:, 0] > 0)[0], 1),
    "two numbers": lambda a: (1, np.array([0, 2]), -1),
}


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("name", PLACES)
def test_places_beside_a_number(name, adds):
    def fn(a):
        if adds:
            a[PLACES[name](a)] += 1
        else:
            a[PLACES[name](a)] = 5

    rng = np.random.default_rng(0)
    compiled = tenon.compile(fn)
    for _ in range(3):
        a = rng.normal(size=(4, 3, 2) if name == "two numbers" else (4, 3))
        a.flat[0] = 1
        b = a.copy()
        fn(a)
        compiled(b)
        np.testing.assert_array_equal(b, a)
    assert tenon.stats()["graphs"] > 0 and tenon.stats()["eager_fallbacks"] == 0
