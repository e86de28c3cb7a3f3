"""Arrays of small integers beside an int that varies, and that their dtype may not hold: NumPy compares with it as it is, and refuses what would wrap around."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

NUMPY = {
    "less": lambda a, i: a < i,
    "more": lambda a, i: a > -i,
    "reflected": lambda a, i: i >= a,
    "equal": lambda a, i: a == i,
    "clip": lambda a, i: np.clip(a, 0, i),
    "count": lambda a, i: np.count_nonzero(a > -i),
    "mask": lambda a, i: a[a < i],
    "add": lambda a, i: a + i,
    "maximum": lambda a, i: np.maximum(a, i),
    "item": lambda a, i: (b := a.copy(), b.__setitem__(0, i))[0],
    "fill": lambda a, i: (b := a.copy(), b.fill(i))[0],
    "full": lambda a, i: np.full(3, i, np.int8),
    "array": lambda a, i: np.array([i, 1], np.int8),
    "where": lambda a, i: np.where(a > 100, a, i),
}
TORCH = {
    "less": lambda a, i: a < i,
    "add": lambda a, i: a + i,
    "clamp": lambda a, i: a.clamp(0, i),
    "where": lambda a, i: torch.where(a > 0, a, i),
    "fill": lambda a, i: a.clone().fill_(i),
    "full": lambda a, i: torch.full((2,), i, dtype=torch.int8),
    "item": lambda a, i: (b := a.clone(), b.__setitem__(0, i))[0],
    "masked_fill": lambda a, i: a.masked_fill(a > 0, i),
    "tensor": lambda a, i: torch.tensor([i], dtype=torch.uint8),
    "power": lambda a, i: a**i,
}


def outcome(fn, *arguments):
    try:
        return fn(*arguments)
    except (OverflowError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("dtype", ["u1", "i1", "i2"])
@pytest.mark.parametrize("name", NUMPY)
def test_arrays(name, dtype, dynamic):
    fn, a = NUMPY[name], np.array([100, 120, 90]).astype(dtype)
    compiled = tenon.compile(fn, dynamic=dynamic)
    for i in (3, 5, 7, 100, 256, 300, -1, -200, 40000, 3):
        got, want = outcome(compiled, a, i), outcome(fn, a, i)
        if isinstance(want, str):
            assert got == want
        else:
            np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
@pytest.mark.parametrize("name", TORCH)
def test_tensors(name, dtype):
    fn, a = TORCH[name], torch.tensor([100, 120, 90], dtype=dtype)
    compiled = tenon.compile(fn)
    for i in (3, 5, 7, 100, 256, 300, -1, -200, 3):
        got, want = outcome(compiled, a, i), outcome(fn, a, i)
        if isinstance(want, str):
            assert got == want
        else:
            torch.testing.assert_close(got, want, rtol=0, atol=0)
