"""`out=` of NumPy's functions: what they give is what was handed to them, or a scalar where NumPy gives one, and the memory is written."""
import numpy as np
import pytest

import tenon

# `a` is a vector or matrix, `o` an array without dimensions.
SCALARS = {
    "dot": "np.dot(a, a, out=o)",
    "mean": "np.mean(a, out=o)",
    "reduce": "np.add.reduce(a, out=o)",
    "max": "a.max(out=o)",
    "matmul": "np.matmul(a, a, out=o)",
    "einsum": "np.einsum('i,i->', a, a, out=o)",
    "numbers": "np.add(1.0, 2.0, out=o)",
    "trace": "np.trace(np.outer(a, a), out=o)",
    "std": "np.std(a, out=o)",
    "median": "np.median(a, out=o)",
    "percentile": "np.percentile(a, 30, out=o)",
    "argmax": "np.argmax(a, out=np.zeros((), int))",
    "clip": "np.clip(3.0, 1, 2, out=o)",
    "nansum": "np.nansum(a, out=o)",
    "nanmean": "np.nanmean(a, out=o)",
    "prod": "a.prod(out=o)",
    "any": "np.any(a, out=np.zeros((), bool))",
    "square": "np.square(a[1], out=o)",
    "vecdot": "np.vecdot(a, a, out=o)",
    "round": "np.round(a[1], out=o)",
    "take": "np.take(a, 1, out=o)",
    "ptp": "np.ptp(a, out=o)",
}


@pytest.mark.parametrize("name", SCALARS)
def test_arrays_without_dimensions(name):
    fn = eval(f"lambda a, o: (lambda r: (r is o, type(r), r, o))({SCALARS[name]})", {"np": np})
    compiled = tenon.compile(fn)
    for _ in range(2):
        want, got = fn(np.arange(4.0) + 1, np.zeros(())), compiled(np.arange(4.0) + 1, np.zeros(()))
        assert got[:2] == want[:2]
        np.testing.assert_allclose(got[2], want[2])
        np.testing.assert_allclose(got[3], want[3])


SITUATIONS = {
    "one result": "lambda a, o: np.sin(a, out=o)",
    "a tuple": "lambda a, o: np.divmod(a, 3, out=(o, np.empty_like(o)))",
    "where": "lambda a, o: np.sqrt(a, out=o, where=a > 1)",
    "a row": "lambda a, o: np.sum(a, axis=0, out=o[0])",
    "a method": "lambda a, o: a.max(1, out=o[:, 0])",
    "the operand": "lambda a, o: np.multiply(a, 2, out=a)",
    "the operand turned": "lambda a, o: np.add(a[:3, :3], a[:3, :3].T, out=a[:3, :3])",
    "part of the operand": "lambda a, o: np.add(a[:-1], a[1:], out=a[1:])",
    "columns": "lambda a, o: np.negative(a, out=o.T.reshape(4, 3).T)",
    "joined": "lambda a, o: np.concatenate([a[:1], a[1:]], out=o)",
    "taken": "lambda a, o: np.take(a, [1, 0], axis=0, out=o[:2])",
    "running sums": "lambda a, o: np.cumsum(a, axis=1, out=o)",
    "a product": "lambda a, o: np.dot(a, a.T, out=np.empty((3, 3)))",
    "clipped": "lambda a, o: a.clip(1, 5, out=a)",
    "narrower": "lambda a, o: np.add(a, 1, out=np.empty((3, 4), np.float32), casting='same_kind')",
    "chosen": "lambda a, o: np.copyto(a, o, where=a > 2)",
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_arrays(name):
    fn = eval(SITUATIONS[name], {"np": np})
    compiled = tenon.compile(fn)
    for _ in range(2):
        plain, given = (np.arange(12.0).reshape(3, 4), np.zeros((3, 4))), (np.arange(12.0).reshape(3, 4), np.zeros((3, 4)))
        want, got = fn(*plain), compiled(*given)
        assert type(got) is type(want)
        for one, other in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
            assert type(one) is type(other) and [one is g for g in given] == [other is p for p in plain]
            if other is not None:
                np.testing.assert_allclose(one, other)
                assert (one.strides, one.dtype, one.flags.owndata) == (other.strides, other.dtype, other.flags.owndata)
                assert [np.shares_memory(one, g) for g in given] == [np.shares_memory(other, p) for p in plain]
        np.testing.assert_allclose(given[0], plain[0])
        np.testing.assert_allclose(given[1], plain[1])


def test_what_numpy_refuses_is_refused():
    for fn in (lambda a, o: np.add(a, 1, out=o.astype(int)), lambda a, o: np.add(a, 1, out=o[:2]), lambda a, o: np.add(a, 1, out=np.broadcast_to(o[0], (3, 4)))):
        for call in (fn, tenon.compile(fn)):
            with pytest.raises((TypeError, ValueError)):
                call(np.arange(12.0).reshape(3, 4), np.zeros((3, 4)))
