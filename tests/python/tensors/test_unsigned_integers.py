"""Unsigned integers of more than 8 bits, which graphs do not carry: eager's results, and a count of what ran eagerly."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

PROGRAMS = {
    "product": lambda x: x * x,
    "to float": lambda x: x.to(torch.float32) * 2,
    "slice": lambda x: x[1:],
}


def is_same(got, want):
    return type(got) is type(want) and got.dtype == want.dtype and bool((got == want).all())


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_tensors_run_eagerly(name, dtype):
    x = torch.tensor([1, 2, 60000]).to(getattr(torch, dtype))
    tenon.reset()
    assert is_same(tenon.compile(PROGRAMS[name])(x), PROGRAMS[name](x))
    assert tenon.stats()["eager_fallbacks"] == 1


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_arrays_run_eagerly(dtype):
    x = np.array([1, 2, 60000], dtype)
    tenon.reset()
    assert is_same(tenon.compile(lambda x: x * x + 1)(x), x * x + 1)
    assert tenon.stats()["eager_fallbacks"] == 1


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_conversions_break_the_graph(dtype):
    def program(x):
        return (x * 2).to(getattr(torch, dtype))

    x = torch.tensor([1.0, 2.0, 3.0])
    tenon.reset()
    assert is_same(tenon.compile(program)(x), program(x))
    assert tenon.stats()["graph_breaks"] > 0
