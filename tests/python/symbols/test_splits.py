"""Splits along a size that varies: one variant for all sizes that give as many parts."""
from __future__ import annotations

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


def rows(n):
    return torch.arange(4.0 * n).reshape(n, 4) / 7


def shapes_and_sums(parts):
    return [part.shape for part in parts], [part.sum(0) for part in parts]


SPLITS = {
    "chunk": lambda x: shapes_and_sums(x.chunk(3)),
    "chunk_by_name": lambda x: shapes_and_sums(torch.chunk(x, chunks=3, dim=0)),
    "chunk_from_behind": lambda x: shapes_and_sums(x.chunk(2, -2)),
    "chunk_of_rows": lambda x: [part.shape for part in x.t().chunk(3, 1)],
    "tensor_split": lambda x: shapes_and_sums(torch.tensor_split(x, 3)),
    "tensor_split_method": lambda x: shapes_and_sums(x.tensor_split(4, dim=0)),
    "split_by_half": lambda x: shapes_and_sums(x.split((x.shape[0] + 1) // 2)),
    "other_dimension": lambda x: (x.chunk(2, 1), x.split(3, 1)[1], torch.tensor_split(x, 3, 1)),
    "joined": lambda x: torch.cat([part * i for i, part in enumerate(x.chunk(3))]),
}


@pytest.mark.parametrize("name", SPLITS)
def test_forty_sizes(check, name):
    fn = SPLITS[name]
    compiled = tenon.compile(fn)
    for n in range(7, 47):
        check.same(compiled(rows(n)), fn(rows(n)))
    stats = tenon.stats()
    assert (stats["graph_breaks"], stats["eager_fallbacks"]) == (0, 0) and stats["graphs"] <= 3, stats


@pytest.mark.parametrize("axis", [0, -1])
def test_arrays(check, axis):
    def fn(a):
        return [part.sum(0) for part in np.array_split(a, 3, axis)], np.array_split(a, 4)[1].shape

    compiled = tenon.compile(fn)
    for n in range(7, 47):
        a = rows(n).numpy()
        check.same(compiled(a), fn(a))
    assert tenon.stats()["graphs"] <= 3 and tenon.stats()["graph_breaks"] == 0


def test_parts_are_views(check):
    def fn(x):
        for i, part in enumerate(x.chunk(3)):
            part.mul_(i)
        first, last = torch.tensor_split(x, 2)
        first += 1
        return x * 2, last

    compiled = tenon.compile(fn)
    for n in range(7, 27):
        ours, plain = rows(n), rows(n)
        check.same(compiled(ours), fn(plain))
        check.same(ours, plain)
    assert tenon.stats()["graphs"] <= 3


def test_numbers_of_parts_differ(check):
    def fn(x):
        return [part.mean() for part in x.split(4)], len(x.chunk(5)), [part.shape for part in x.tensor_split(5)]

    compiled = tenon.compile(fn)
    for n in (*range(2, 17), *range(2, 17)):
        check.same(compiled(rows(n)), fn(rows(n)))


@pytest.mark.parametrize(
    "fn",
    [lambda x: x.chunk(0), lambda x: x.split(-1), lambda x: torch.tensor_split(x, 0), lambda x: x.chunk(2, 5)],
    ids=["no_chunks", "negative", "no_sections", "dimension"],
)
def test_what_torch_refuses(fn):
    compiled = tenon.compile(fn)
    for n in (5, 6, 7):
        with pytest.raises((RuntimeError, IndexError, ValueError)) as want:
            fn(rows(n))
        with pytest.raises(type(want.value)) as got:
            compiled(rows(n))
        assert str(got.value) == str(want.value)
