"""Whether a view has gaps decides what the library does with it, and changes with the numbers that say what it shows."""
import numpy as np
import pytest

import tenon
from tests.python.conftest import same

torch = pytest.importorskip("torch")

BLOCK = torch.arange(144.0).reshape(3, 6, 8)
SIZES = [5, 7, 3, 8, 6, 2, 1, 4, 9, 8, 6, 3]


def write(copy):
    def fn(x, n):
        y = copy(x, n)
        y += 1
        return x, y

    return fn


OF_BOTH = {
    "reshape_of_rows": write(lambda x, n: x[:, :n].reshape(-1)),
    "reshape_of_columns": write(lambda x, n: x[:, :, :n].reshape(-1)),
    "reshape_from_a_start": write(lambda x, n: x[:, n - 1 :].reshape(-1)),
    "reshape_of_steps": write(lambda x, n: x[:, :, ::n].reshape(-1)),
    "reshape_of_transposed": write(lambda x, n: x[:, :, :n].swapaxes(0, 1).reshape(-1)),
    "sum_of_transposed": lambda x, n: x[:, :, :n].swapaxes(0, 2) * 2,
    "reshape_of_slabs": write(lambda x, n: x[:n].reshape(-1)),
    "ravel": write(lambda x, n: x[:, :n].ravel()),
}
OF_TORCH = {
    "contiguous": write(lambda x, n: x[:, :, :n].contiguous()),
    "flatten": write(lambda x, n: x[:, :n].flatten(1)),
    "is_contiguous": lambda x, n: (x[:, :n].is_contiguous(), x[:, :, :n].is_contiguous(), x[:, :, ::n].is_contiguous(), x[:n].is_contiguous()),
    "same_object": lambda x, n: [y.contiguous() is y for y in (x[:, :n], x[:, :, :n], x[:n])],
    "stride": lambda x, n: (x[:, :n].stride(), x[:, :, ::n].stride(), (x[:, :n] + 1).stride(), x[:, :n].transpose(0, 1).clone().stride()),
    "view": lambda x, n: x[:, :n].view(-1) * 2 if x[:, :n].is_contiguous() else x[0],
}
OF_NUMPY = {
    "flags": lambda x, n: (x[:, :n].flags.c_contiguous, x[:, :, :n].flags["C_CONTIGUOUS"], x[:, :, :n].T.flags.f_contiguous),
    "strides": lambda x, n: (x[:, :n].strides, x[:, :, ::n].strides, (x[:, :n] + 1).strides),
    "ascontiguousarray": write(lambda x, n: np.ascontiguousarray(x[:, :n])),
}


def check(fn, make):
    compiled = tenon.compile(fn)
    for n in SIZES:
        mine, theirs = make(), make()
        same(compiled(mine, n), fn(theirs, n))
        same(mine, theirs)
    assert tenon.stats()["eager_fallbacks"] == 0, tenon.stats()


@pytest.mark.parametrize("name", [*OF_BOTH, *OF_TORCH])
def test_views_of_torch(name):
    check({**OF_BOTH, **OF_TORCH}[name], BLOCK.clone)


@pytest.mark.parametrize("name", [*OF_BOTH, *OF_NUMPY])
def test_views_of_numpy(name):
    check({**OF_BOTH, **OF_NUMPY}[name], lambda: BLOCK.numpy().copy())


def test_views_that_are_given():
    fn = lambda x: (x.is_contiguous(), x.stride(), x.reshape(-1) * 2, x.contiguous() is x)
    compiled = tenon.compile(fn)
    for n in SIZES:
        for view in (BLOCK[:, :n], BLOCK[:, :, :n], BLOCK[:n], BLOCK[:, :, ::n], BLOCK[:, :n].transpose(0, 1)):
            same(compiled(view), fn(view))
