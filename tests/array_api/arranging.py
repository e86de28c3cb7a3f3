"""Samples of functions that make, move, pick or order elements."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.array_api.elementwise import layouts, shapes
from tests.array_api.operands import Operand, array, special
from tests.array_api.sample import Sample, call


def _is_float(dtype: str) -> bool:
    return dtype.startswith("float")


def arange(dtype: str) -> Iterator[Sample]:
    for args in ((5,), (2, 9), (1, 10, 3), (9, 1, -2), (0,)):
        yield call(*args, dtype=dtype) if dtype != "bool" or len(args) == 1 and args[0] < 3 else call(*args)
    yield call(0.5, 3.25, 0.25, dtype=dtype if _is_float(dtype) else None)


def asarray(dtype: str) -> Iterator[Sample]:
    for operand in (*shapes(dtype), *layouts(dtype, 4, 6)):
        yield call(operand)
        yield call(operand, copy=True)
        yield call(operand, dtype="float32")
    yield call([1, 2, 3], dtype=dtype)
    yield call(2.5, dtype=dtype)


def _like(dtype: str, *value: object) -> Iterator[Sample]:
    for operand in (*shapes(dtype), *layouts(dtype, 4, 6)):
        yield call(operand, *value)
    yield call(array(dtype, 2, 3), *value, dtype="int32")


def _of_shape(dtype: str, *value: object) -> Iterator[Sample]:
    for shape in ((2, 3), (), 4, (0, 2)):
        yield call(shape, *value, dtype=dtype)
    yield call((2, 2), *value)


def empty(dtype: str) -> Iterator[Sample]:
    yield from _of_shape(dtype)


def empty_like(dtype: str) -> Iterator[Sample]:
    yield from _like(dtype)


def full(dtype: str) -> Iterator[Sample]:
    yield from _of_shape(dtype, 3)
    yield call((3, 2), array(dtype, 2))


def full_like(dtype: str) -> Iterator[Sample]:
    yield from _like(dtype, 2)


def eye(dtype: str) -> Iterator[Sample]:
    yield call(3, dtype=dtype)
    for k in (-1, 0, 2):
        yield call(3, 4, k=k, dtype=dtype)
    yield call(0, dtype=dtype)


def from_dlpack(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 3, 4))


def linspace(dtype: str) -> Iterator[Sample]:
    for kwargs in ({}, {"endpoint": False}, {"dtype": dtype}):
        yield call(0, 9, 7, **kwargs)
    yield call(2.5, -1, 1)
    yield call(array(dtype, 3), array(dtype, 3, seed=1), 5)


def meshgrid(dtype: str) -> Iterator[Sample]:
    for indexing in ("xy", "ij"):
        yield call(array(dtype, 3), array(dtype, 4), indexing=indexing)
        yield call(array(dtype, 2), array(dtype, 3, layout="reversed"), array(dtype, 4), indexing=indexing)
    yield call(array(dtype, 0), array(dtype, 2))


def tril(dtype: str) -> Iterator[Sample]:
    for operand in (array(dtype, 0, 3), array(dtype, 2, 3, 4), *layouts(dtype, 4, 6)):
        for k in (0, 1, -2):
            yield call(operand, k=k)


def astype(dtype: str) -> Iterator[Sample]:
    for other in ("float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool", "complex128"):
        yield call(array(dtype, 3, 5), np.dtype(other))
        yield call(array(dtype, 4, 6, layout="transposed"), np.dtype(other))
        yield call(array(dtype), np.dtype(other))
        if not _is_float(dtype) or _is_float(other) or other == "bool":
            yield call(special(dtype), np.dtype(other))


def broadcast_arrays(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 3, 1), array(dtype, 4))
    yield call(array(dtype), array(dtype, 2, 2), array(dtype, 2, layout="reversed"))


def broadcast_to(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 3, 1), (2, 3, 4))
    yield call(array(dtype), (2,))
    yield call(array(dtype, 4, layout="reversed"), (3, 4))
    yield call(array(dtype, 0), (3, 0))


def can_cast(dtype: str) -> Iterator[Sample]:
    for other in ("float32", "int8", "complex64"):
        yield call(np.dtype(dtype), np.dtype(other))


def finfo(dtype: str) -> Iterator[Sample]:
    return iter(())


def isdtype(dtype: str) -> Iterator[Sample]:
    for kind in ("integral", "real floating", ("bool", "signed integer")):
        yield call(np.dtype(dtype), kind)


def result_type(dtype: str) -> Iterator[Sample]:
    for other in ("float32", "int8", "bool"):
        yield call(array(dtype, 3), np.dtype(other))
        yield call(array(dtype, 3), 2, 1.5)


def take(dtype: str) -> Iterator[Sample]:
    picks = Operand(np.array([0, 2, -1, 1]))
    for operand in layouts(dtype, 4, 6):
        yield call(operand, picks)
        yield call(operand, picks, axis=1)
        yield call(operand, Operand(np.array([[0, 3], [-2, 1]])), axis=0)
    yield call(array(dtype, 5), 2)
    yield call(array(dtype, 5), Operand(np.array([5])))
    yield call(array(dtype, 3, 4), Operand(np.array([], "int64")), axis=1)


def take_along_axis(dtype: str) -> Iterator[Sample]:
    for operand in layouts(dtype, 4, 6):
        yield call(operand, Operand(np.array([[0, -1], [1, 2], [3, 4], [-6, 5]])), axis=1)
        yield call(operand, Operand(np.array([[0, 1, 2, 3, -1, -2]])), axis=0)
    yield call(array(dtype, 5), Operand(np.array([7])), axis=0)


def concat(dtype: str) -> Iterator[Sample]:
    for axis in (0, 1, -1):
        yield call((array(dtype, 2, 3), array(dtype, 2, 3, seed=1)), axis=axis)
    yield call((array(dtype, 2, 3), array(dtype, 4, 3, layout="reversed"), array(dtype, 0, 3)))
    yield call((array(dtype, 2, 3), array("float32", 2, 3)), axis=None)
    yield call((array(dtype, 2, 3), array(dtype, 2, 4)))


def expand_dims(dtype: str) -> Iterator[Sample]:
    for operand in layouts(dtype, 4, 6):
        for axis in (0, 1, -1, (0, 3)):
            yield call(operand, axis=axis)
    yield call(array(dtype), axis=0)


def flip(dtype: str) -> Iterator[Sample]:
    for operand in (*shapes(dtype), *layouts(dtype, 4, 6)):
        yield call(operand)
        if operand.values.ndim:
            yield call(operand, axis=-1)
    yield call(array(dtype, 2, 3, 4), axis=(0, 2))


def moveaxis(dtype: str) -> Iterator[Sample]:
    for layout in ("plain", "reversed", "transposed"):
        yield call(array(dtype, 2, 3, 4, layout=layout), 0, -1)
        yield call(array(dtype, 2, 3, 4, layout=layout), (0, 1), (2, 0))


def permute_dims(dtype: str) -> Iterator[Sample]:
    for layout in ("plain", "reversed", "transposed"):
        yield call(array(dtype, 2, 3, 4, layout=layout), (2, 0, 1))
    yield call(array(dtype, 3, 4), (0, 0))


def repeat(dtype: str) -> Iterator[Sample]:
    for operand in layouts(dtype, 4, 6):
        yield call(operand, 2)
        yield call(operand, 3, axis=0)
        yield call(operand, Operand(np.array([1, 0, 2, 3])), axis=0)
    yield call(array(dtype, 0), 2)


def reshape(dtype: str) -> Iterator[Sample]:
    for operand in layouts(dtype, 4, 6):
        for shape in ((24,), (2, 12), (3, -1), (-1, 1)):
            yield call(operand, shape)
        yield call(operand, (8, 3), order="F")
        yield call(operand, (8, 3), copy=True)
    yield call(array(dtype), (1, 1))
    yield call(array(dtype, 0, 3), (3, 0))
    yield call(array(dtype, 4), (3,))


def roll(dtype: str) -> Iterator[Sample]:
    for operand in layouts(dtype, 4, 6):
        yield call(operand, 2)
        yield call(operand, -1, axis=1)
        yield call(operand, (1, 2), axis=(0, 1))
    yield call(array(dtype, 0), 1)


def squeeze(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 1, 3, 1), axis=0)
    yield call(array(dtype, 1, 3, 1), axis=(0, 2))
    yield call(array(dtype, 2, 3), axis=0)


def stack(dtype: str) -> Iterator[Sample]:
    for axis in (0, 1, -1):
        yield call((array(dtype, 2, 3), array(dtype, 2, 3, layout="transposed")), axis=axis)
    yield call((array(dtype), array("int8")))
    yield call((array(dtype, 2), array(dtype, 3)))


def tile(dtype: str) -> Iterator[Sample]:
    for operand in layouts(dtype, 2, 3):
        for repetitions in (2, (2, 1), (2, 1, 2), (0, 1)):
            yield call(operand, repetitions)


def unstack(dtype: str) -> Iterator[Sample]:
    for axis in (0, 1, -1):
        yield call(array(dtype, 3, 4), axis=axis)


def nonzero(dtype: str) -> Iterator[Sample]:
    for operand in (array(dtype, 7), array(dtype, 0), special(dtype), *layouts(dtype, 4, 6)):
        yield call(operand)


def searchsorted(dtype: str) -> Iterator[Sample]:
    x = Operand(np.sort(array(dtype, 9).values))
    for side in ("left", "right"):
        yield call(x, array(dtype, 3, 4, seed=2), side=side)
        yield call(x, 1, side=side)
    yield call(array(dtype, 5), array(dtype, 3), sorter=Operand(np.argsort(array(dtype, 5).values)))


def _sets(dtype: str) -> Iterator[Sample]:
    for operand in (array(dtype, 12), array(dtype, 0), array(dtype), special(dtype), array(dtype, 4, 6, layout="reversed")):
        yield call(operand)


def isin(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 4, 6), array(dtype, 5, seed=3))
    yield call(array(dtype, 4, 6), array(dtype, 5, seed=3), invert=True)
    yield call(array(dtype, 5), 2)
    yield call(array(dtype, 0), array(dtype, 2))


def sort(dtype: str) -> Iterator[Sample]:
    for operand in (*(s for s in shapes(dtype) if s.values.ndim), special(dtype), *layouts(dtype, 4, 6)):
        yield call(operand)
        yield call(operand, axis=0, stable=True)


def argsort(dtype: str) -> Iterator[Sample]:
    for operand in (*(s for s in shapes(dtype) if s.values.ndim), special(dtype), *layouts(dtype, 4, 6)):
        yield call(operand, stable=True)
        yield call(operand, axis=0, stable=True)
    yield call(array(dtype, 3, 5))


def diff(dtype: str) -> Iterator[Sample]:
    for operand in layouts(dtype, 4, 6):
        yield call(operand)
        yield call(operand, n=2, axis=0)
    yield call(array(dtype, 5), prepend=array(dtype, 1), append=array(dtype, 2))


PICKS = (
    2, -1, slice(1, None), slice(None, None, -1), (slice(None), 1), (1, 2), Ellipsis, None, (Ellipsis, 0), (None, slice(0, 2)), (), slice(3, 1), 9,
    Operand(np.array([0, 2, 2])), Operand(np.array([[1, 0], [3, -1]])), (Operand(np.array([0, 1])), Operand(np.array([2, 3]))),
    (slice(None), Operand(np.array([3, 0, 0]))), Operand(np.array([True, False, True, True])), (Operand(np.array([True, False, True, False])), 2),
    Operand(np.arange(24).reshape(4, 6) % 3 == 0),
)  # fmt: skip


def __getitem__(dtype: str) -> Iterator[Sample]:  # noqa: N807: the name of the function that it is for
    for pick in PICKS:
        for layout in ("plain", "reversed", "transposed"):
            yield call(array(dtype, 4, 6, layout=layout), pick)
    yield call(array(dtype), ())
    yield call(array(dtype, 0, 3), slice(None, None, 2))


def __setitem__(dtype: str) -> Iterator[Sample]:  # noqa: N807: the name of the function that it is for
    for pick in PICKS:
        for layout in ("plain", "reversed", "transposed"):
            yield call(array(dtype, 4, 6, layout=layout), pick, 1)
    yield call(array(dtype, 4, 6), slice(1, 3), array(dtype, 6, seed=1))
    yield call(array(dtype, 4, 6), (slice(None), 2), array("float32", 4, seed=1))
    yield call(array(dtype), (), 1)


def frequencies(dtype: str) -> Iterator[Sample]:
    for n in (1, 4, 7):
        yield call(n)
        yield call(n, d=0.5)


FAMILIES = {
    f.__name__: f
    for f in (
        arange, asarray, empty, empty_like, full, full_like, eye, from_dlpack, linspace, meshgrid, tril, astype, broadcast_arrays, broadcast_to,
        can_cast, finfo, isdtype, result_type, take, take_along_axis, concat, expand_dims, flip, moveaxis, permute_dims, repeat, reshape, roll,
        squeeze, stack, tile, unstack, nonzero, searchsorted, isin, sort, argsort, diff, __getitem__, __setitem__, frequencies,
    )
}  # fmt: skip
FAMILIES |= {"ones": empty, "zeros": empty, "ones_like": empty_like, "zeros_like": empty_like, "triu": tril, "iinfo": finfo}
FAMILIES |= {name: _sets for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")}
