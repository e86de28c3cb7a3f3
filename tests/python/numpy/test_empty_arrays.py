"""Arrays without elements: NumPy gives those that it allocates strides of 0."""
import numpy as np
import pytest
import tenon

MADE = {
    "arithmetic": lambda a: a[:0] * 2,
    "two dimensions": lambda a: np.zeros((3, 0)) + a[:0],
    "joined": lambda a: np.concatenate([a[:0], a[:0]]),
    "stacked": lambda a: np.stack([a[:0]] * 2),
    "found": lambda a: a[a > 100],
    "cast": lambda a: a[:0].astype(np.int32),
    "copied": lambda a: a[:0].copy(),
    "product": lambda a: np.dot(np.ones((3, 0)).T, np.ones((3, 2))) * a[:1],
    "sizes that vary": lambda a, n: np.ones((n, 2)) * a[0],
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("name", MADE)
def test_strides(name, dynamic):
    function = MADE[name]
    compiled = tenon.compile(function, dynamic=dynamic)
    for n in (2, 0, 3):
        given = (np.arange(4.0), n)[: function.__code__.co_argcount]
        got, want = compiled(*given), function(*given)
        assert (got.shape, got.strides, got.flags.owndata) == (want.shape, want.strides, want.flags.owndata)
