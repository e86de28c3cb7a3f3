"""Writes through views whose elements share memory, and through parts of such views: windows, broadcasts, as_strided."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")
windows = np.lib.stride_tricks.sliding_window_view
as_strided = np.lib.stride_tricks.as_strided

from tests.python.tensors.writes import check_writes, copies  # noqa: E402


def rows(x):
    x.unfold(0, 3, 1)[1].add_(10)
    return x


def columns(x):
    x.unfold(0, 2, 1)[:, 1].mul_(2)
    return x + 1


def every_second_window(x):
    x.unfold(0, 3, 1)[::2].copy_(torch.arange(6.0).reshape(2, 3))


def windows_that_leave_gaps(x):
    v = x.unfold(0, 1, 4)
    v.add_(v)
    return v


def one_window_from_another(x):
    w = x.unfold(0, 2, 1)
    w[0] = w[2]
    return w.sum()


def transposed_windows(x):
    x.unfold(0, 3, 1).transpose(0, 1)[1].neg_()


def picked(x):
    w = x.unfold(0, 3, 1)[1]
    w.index_fill_(0, torch.tensor([0, 2]), 9.0)
    w.masked_fill_(w > 3, 0.0)
    return w


def copied_windows(x):
    x.unfold(0, 3, 1).reshape(-1).zero_()
    return x


def windows_side_by_side(x):
    x.unfold(0, 2, 2).flatten().zero_()
    return x


def strided_diagonal(x):
    x.as_strided((3, 3), (1, 1)).diagonal().fill_(-1)
    return x.as_strided((3, 3), (1, 1))


def strided_column(x):
    x.as_strided((3, 3), (1, 1))[:, 0].mul_(3)


def broadcast_row(x):
    x.expand(3, 6)[0].add_(1)
    return x


def broadcast_block(x):
    x.expand(3, 6)[:, 1:3][1].mul_(4)


def of_a_new_tensor(x):
    y = x * 2
    y.unfold(0, 3, 2)[1].abs_()
    y.unfold(0, 3, 1)[0].sub_(1)
    return y, y.unfold(0, 3, 1)


@pytest.mark.parametrize(
    "fn",
    [rows, columns, every_second_window, windows_that_leave_gaps, one_window_from_another, transposed_windows, picked, copied_windows, windows_side_by_side]
    + [strided_diagonal, strided_column, broadcast_row, broadcast_block, of_a_new_tensor],
)
def test_tensors(check, fn):
    check_writes(check.same, fn, copies(torch.arange(6.0)), fallbacks=None)


def one_element(a):
    w = windows(a, 3, writeable=True)
    w[1, 1] = 99
    return w.sum()


def every_third(a):
    w = windows(a, 3, writeable=True)
    w[::3] *= 2
    return a


def rounded_up(a):
    w = windows(a, 3, writeable=True)
    np.ceil(w[0], out=w[0])
    np.copyto(w[2], [5, 6, 7])
    np.add.at(w[1], [0, 0, 2], 1)
    return a


def first_from_last(a):
    w = as_strided(a, (3, 3), (8, 8))
    w[:, 0] = w[:, 2]
    return w


def swapped(a):
    w = windows(a, 2, writeable=True)
    w[0], w[2] = w[2].copy(), w[0].copy()
    return a


def of_a_new_array(a):
    b = a + 1
    windows(b, 3, writeable=True)[1] -= 4
    return b


@pytest.mark.parametrize("fn", [one_element, every_third, rounded_up, first_from_last, swapped, of_a_new_array])
def test_arrays(check, fn):
    check_writes(check.same, fn, copies(np.arange(6.0) + 0.5), fallbacks=None)


@pytest.mark.parametrize("fn", [lambda x: x[:1].expand(3).mul_(2), lambda x: torch.add(x[:-1], 1, out=x[1:]), lambda x: x[1:].copy_(x[:-1])])
def test_what_eager_refuses_is_refused(fn):
    for call in (fn, tenon.compile(fn)):
        with pytest.raises(RuntimeError, match="single memory location|written-to tensor"):
            call(torch.arange(6.0))
