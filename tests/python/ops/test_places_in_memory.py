"""Operators of ATen that go by places in memory, by the names of their overloads."""
from __future__ import annotations

import pytest

import tenon

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("lay", [lambda x: (x + 1).t(), lambda x: (x + 1)[1:]], ids=["transposed", "part"])
def test_places_in_memory_by_overloads(lay):
    """What ATen's operators find by places in memory is another thing where a value of the graph does not lie as it does there."""
    aten = torch.ops.aten

    def fn(x):
        y = lay(x)
        parts = aten.as_strided.default(y, (2, 5), (3, 2)) * 1, aten.as_strided_copy.default(y, (2, 5), (3, 2))
        return *parts, aten.as_strided_scatter.default(y, torch.zeros(2, 5), (2, 5), (3, 2)), aten.resize.default(y, (3, 2))

    x = torch.arange(30.0).view(5, 6)
    for got, want in zip(tenon.compile(fn)(x), fn(x), strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)
