"""Numbers that vary, as arguments of calls that the library makes itself; lengths of lists; arrays of varying sizes that are written."""
import random

import numpy as np
import pytest

import tenon
from tests.python.conftest import same

torch = pytest.importorskip("torch")
F = torch.nn.functional

IMAGE = torch.linspace(-1, 1, 3 * 40 * 48).reshape(3, 40, 48)
LINE = np.linspace(-1, 1, 200)
VECTOR = torch.linspace(-1, 1, 200)


def check(fn, arguments, most, calls=40, breaks=0):
    """The same results and writes as plain execution, with few graphs, and no plain call."""
    tenon.reset()
    compiled, draw, again = tenon.compile(fn), random.Random(5), random.Random(5)
    with torch.no_grad():
        for _ in range(calls):
            mine, theirs = arguments(draw), arguments(again)
            want = fn(*theirs)
            same(compiled(*mine), want)
            same(list(mine), list(theirs))
    stats = tenon.stats()
    assert stats["graphs"] <= most and stats["eager_fallbacks"] == 0 and stats["graph_breaks"] <= breaks, stats


def crop(x, top, left, height, width):
    return F.interpolate(x[None, :, top:top + height, left:left + width], size=(16, 16), mode="bilinear", antialias=True)


@pytest.mark.parametrize(("fn", "arguments", "most"), [
    (lambda a, at: np.insert(a, at, 5.0) * 2, lambda r: (LINE, r.randint(-200, 200)), 2),
    (lambda a, at: np.insert(a, at, 5.0) * 2, lambda r: (LINE[:r.randint(50, 200)].copy(), r.randint(-50, 50)), 3),
    (lambda a, n: np.trace(a[:196].reshape(14, 14), n), lambda r: (LINE, r.randint(-13, 13)), 2),
    (lambda a, n: np.diag(a[:9], n), lambda r: (LINE, r.randint(0, 9)), 2),
    (lambda x, n: x.topk(n)[0], lambda r: (VECTOR, r.randint(2, 199)), 5),
    (lambda x, h, w: F.adaptive_avg_pool2d(x, (h, w)), lambda r: (IMAGE, r.randint(2, 40), r.randint(2, 48)), 5),
    (lambda x, h, w: F.interpolate(x[None], size=(h, w), mode="bicubic", antialias=True), lambda r: (IMAGE, r.randint(8, 60), r.randint(8, 60)), 4),
    (lambda x, p: torch.nn.functional.hardshrink(x, p).sum() + torch.special.gammaincc(x.abs(), x.exp()).sum() * p, lambda r: (VECTOR, r.uniform(0.1, 0.9)), 2),
], ids=["insert", "insert_of_varying", "trace", "diag", "topk", "adaptive", "antialias", "float"])
def test_a_number_of_a_call_that_the_library_makes(fn, arguments, most):
    check(fn, arguments, most)


def test_a_crop_of_any_size_is_resized_by_the_library():
    check(crop, lambda r: (IMAGE, r.randint(0, 9), r.randint(0, 9), r.randint(4, 30), r.randint(4, 30)), 6)


def test_a_result_as_long_as_the_longest_argument():
    def padded(batch):
        return torch.nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=2.0) * 3

    check(padded, lambda r: ([torch.full((r.randint(2, 30),), r.random()) for _ in range(3)],), 3)


def test_a_number_that_a_call_refuses_raises_what_plain_execution_does():
    compiled = tenon.compile(lambda a, at: np.insert(a, at, 5.0))
    for at in (3, 5, 9):
        same(compiled(LINE, at), np.insert(LINE, at, 5.0))
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(LINE, 5000)


def test_the_length_of_a_list():
    check(lambda x, items: x * len(items), lambda r: (VECTOR, [0] * r.randint(0, 90)), 2)
    check(lambda x, items: x / len(items) if items else x, lambda r: (VECTOR, dict.fromkeys(range(r.randint(0, 9)))), 3)


def test_a_length_is_that_of_the_present_call_where_items_are_added():
    def fn(x, items):
        before = len(items)
        items.append(before)
        return x * before + len(items), items[-1]

    check(fn, lambda r: (VECTOR, [0] * r.randint(0, 5)), 8, calls=20)


def test_a_length_beside_the_items():
    def mean(items):
        return sum(items) / len(items)

    check(mean, lambda r: ([VECTOR + i for i in range(r.randint(1, 4))],), 4, calls=20)


def test_whole_frames_of_varying_length():
    check(lambda a, n: a[:len(a) // n * n].reshape(len(a) // n, n).max(1), lambda r: (LINE, r.randint(2, 60)), 2)


@pytest.mark.parametrize("make", [lambda r: np.arange(r.randint(3, 90), dtype=float), lambda r: np.arange(2.0 * r.randint(3, 90))[::2],
                                  lambda r: np.asfortranarray(np.arange(12.0 * r.randint(3, 9)).reshape(12, -1))], ids=["rows", "steps", "columns"])
def test_an_array_of_varying_size_that_is_written(make):
    def fn(a):
        a += 1
        a[1:] *= 2
        return a.sum()

    check(fn, lambda r: (make(r),), 3)


def test_a_tensor_with_gaps_of_varying_size_that_is_written():
    def fn(x):
        x[1:] *= 2
        return x.mul_(3).sum()

    check(fn, lambda r: (torch.arange(4.0 * r.randint(4, 40)).reshape(-1, 4)[:, 1],), 3)
