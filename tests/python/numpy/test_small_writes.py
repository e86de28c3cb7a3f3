"""Writes to a few elements of a large array: they run over those alone, where the array lies."""
import numpy as np
import pytest

import tenon


def set_item(a, i, v):
    a[i] = v


def set_row_of_itself(a, i, v):
    a[i] = a[i - 1] * 2 + v


def move_items(a, i, v):
    a[i + 1 : i + 6] = a[i : i + 5]


def swap(a, i, v):
    a[i], a[i + 1] = a[i + 1].copy(), a[i].copy()


def set_and_read(a, i, v):
    before = a[i].copy()
    a[i] = v
    a[i + 2] = v
    return np.stack([before, a[i - 1] + 1])


def set_and_sum(a, i, v):
    a[i] = v
    return a.sum()


def write_two(a, i, v):
    b = a[::2]
    b[i // 2] = v
    a[-1] = b[0]
    return b


def zero_by_division(a, i, v):
    a[i] = v / (a[i] - a[i])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("shape", [(2000,), (60, 40)])
@pytest.mark.parametrize("fn", [set_item, set_row_of_itself, move_items, swap, set_and_read, set_and_sum, write_two, zero_by_division])
def test_as_plain(fn, shape):
    plain = np.random.default_rng(0).normal(size=shape)
    ours, compiled = plain.copy(), tenon.compile(fn)
    for i in (5, 9, 12, 30):
        want, got = fn(plain, i, 1.5 * i), compiled(ours, i, 1.5 * i)
        np.testing.assert_array_equal(ours, plain)
        assert type(got) is type(want)
        if want is not None:
            for mine, other in zip(np.atleast_1d(got), np.atleast_1d(want)):
                np.testing.assert_allclose(mine, other, rtol=1e-13)


def test_views_of_tensors():
    torch = pytest.importorskip("torch")

    def fn(x, i, v):
        x[i] = v
        x[i + 1, 2:5] = x[i, 1:4] + 1

    plain = torch.randn(60, 40)
    ours, compiled = plain.clone(), tenon.compile(fn)
    with torch.no_grad():
        for i in (3, 7, 8, 20):
            fn(plain, i, 0.5 * i), compiled(ours, i, 0.5 * i)
            assert torch.equal(ours, plain) and ours._version == plain._version
            fn(plain.t()[:40], 4, 1.0), compiled(ours.t()[:40], 4, 1.0)
            assert torch.equal(ours, plain)


@pytest.mark.parametrize("value", [np.arange(3.0), np.array([2.0])], ids=["three", "one"])
def test_fill_takes_no_array(value):
    def fn(a, v):
        a.fill(v)
        return a

    for way in (fn, tenon.compile(fn)):
        with pytest.raises(ValueError, match="setting an array element with a sequence"):
            way(np.zeros((2, 3)), value)
