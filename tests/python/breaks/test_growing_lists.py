"""Lists that grow in a loop with a break: no variant for each length where only the last items are read."""
from __future__ import annotations

import numpy as np
import pytest

import tenon


def grow(read):
    def run(x, count):
        out = [x, x + 1]
        for _ in range(count):
            y = read(out) * 0.5 + 1
            if y.sum() > 1e9:
                break
            out.append(y)
        return out

    return run


@pytest.mark.parametrize("read", [lambda out: out[-1], lambda out: out[-1] + out[-2], lambda out: out[-2] - out[0]])
def test_items_from_the_end_need_no_length(read):
    compiled, x = tenon.compile(grow(read)), np.arange(3.0)
    for _ in range(2):
        for got, want in zip(compiled(x, 25), grow(read)(x, 25), strict=True):
            np.testing.assert_array_equal(got, want)
    assert tenon.stats()["recompiles"] <= 4


def test_items_from_the_end_after_appending():
    def run(log, x):
        log.append(x + 1)
        log.append(x + 2)
        return log[-1], log[-2], log[-3]

    compiled = tenon.compile(run)
    for length in (1, 2, 5):
        log, plain = [np.float64(i) for i in range(length)], [np.float64(i) for i in range(length)]
        assert compiled(log, np.ones(2))[2] == run(plain, np.ones(2))[2]
        assert [x.tolist() for x in log] == [x.tolist() for x in plain]
    assert tenon.stats()["recompiles"] == 0


def test_an_index_before_the_start_is_an_error():
    def run(items, x):
        try:
            return items[-2] + x
        except IndexError as error:
            return str(error)

    compiled = tenon.compile(run)
    for items in ([np.ones(1), np.ones(1)], [np.ones(1)], [], [np.ones(1)] * 3):
        assert compiled(items, 1.0) == run(items, 1.0)


def test_writes_before_and_after():
    def run(items, x):
        items[0] = x
        a = items[-1]
        items.insert(0, x + 1)
        return a, items[-1], items[-2]

    compiled = tenon.compile(run)
    for length in (1, 2, 3, 2):
        items, plain = [np.float64(i) for i in range(length)], [np.float64(i) for i in range(length)]
        assert repr(compiled(items, np.float64(7))) == repr(run(plain, np.float64(7)))
        assert repr(items) == repr(plain)


def test_an_older_list_is_walked_over_after_appending():
    def run(items, x):
        items.append(x)
        items.append(x + 1)
        seen = []
        for each in items:
            seen.append(each)
            if each.sum() > 0:
                seen.append(each * 2)
        return seen

    compiled = tenon.compile(run)
    for _ in range(3):
        assert [a.tolist() for a in compiled([], np.ones(2))] == [a.tolist() for a in run([], np.ones(2))]


@pytest.mark.parametrize("turn", [iter, reversed])
@pytest.mark.parametrize("change", [lambda items: items.append(7), lambda items: items.clear(), lambda items: None])
def test_iterators_over_older_lists_stand_where_they_stood(turn, change):
    def run(items, x):
        items.append(x + 1)
        items.append(x + 2)
        walk = turn(items)
        next(walk)
        change(items)
        return walk

    compiled = tenon.compile(run)
    for length in (0, 3):
        items, plain = [np.float64(i) for i in range(length)], [np.float64(i) for i in range(length)]
        assert repr(list(compiled(items, np.float64(5)))) == repr(list(run(plain, np.float64(5))))


def test_lists_of_ever_new_lengths_compile_a_few_times():
    torch = pytest.importorskip("torch")

    def nms(boxes, scores):
        boxes = boxes[scores.argsort(descending=True)]
        keep = []
        while boxes.shape[0] > 0:
            first, rest = boxes[:1], boxes[1:]
            keep.append(boxes[0])
            inner = (torch.minimum(first[:, 2:], rest[:, 2:]) - torch.maximum(first[:, :2], rest[:, :2])).clamp(min=0).prod(1)
            areas = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (first, rest)]
            boxes = rest[inner / (areas[0] + areas[1] - inner) < 0.3]
        return torch.stack(keep)

    def boxes(count):
        generator = torch.Generator().manual_seed(count)
        corner, size = torch.rand(count, 2, generator=generator) * 10, torch.rand(count, 2, generator=generator) * 4 + 1
        return torch.cat([corner, corner + size], 1), torch.rand(count, generator=generator)

    tenon.reset()
    compiled = tenon.compile(nms)
    for count in range(10, 60, 3):
        torch.testing.assert_close(compiled(*boxes(count)), nms(*boxes(count)))
    assert tenon.stats()["recompiles"] <= 14, tenon.stats()
    before = tenon.stats()["graphs"]
    for count in range(11, 60, 3):
        torch.testing.assert_close(compiled(*boxes(count)), nms(*boxes(count)))
    assert tenon.stats()["graphs"] <= before + 1
