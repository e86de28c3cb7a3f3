"""Samples of functions that go element by element or along an axis."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.array_api.operands import Operand, array, positive, special
from tests.array_api.sample import Sample, call

LAYOUTS = ("plain", "transposed", "reversed", "spread", "one")
OTHERS = ("float64", "float32", "int64", "int32", "int8", "uint8", "bool")


def layouts(dtype: str, *shape: int, seed: int = 0) -> Iterator[Operand]:
    """The same values in each layout."""
    for layout in LAYOUTS:
        yield array(dtype, *shape, layout=layout, seed=seed)


def shapes(dtype: str) -> Iterator[Operand]:
    """Arrays without elements, without dimensions, of one element, and longer than a vector."""
    for shape in ((), (1,), (0,), (0, 3), (37,), (2, 3, 5), (1, 1, 4)):
        yield array(dtype, *shape)


def unary(dtype: str) -> Iterator[Sample]:
    yield call(special(dtype))
    yield call(array(dtype, 3, 5))
    yield call(positive(dtype, 4, 3))
    for operand in (*shapes(dtype), *layouts(dtype, 4, 6)):
        yield call(operand)


def _pairs(dtype: str, right=array) -> Iterator[Sample]:
    for a, b in (((4, 5), (4, 5)), ((4, 5), (5,)), ((3, 1), (1, 4)), ((), (4,)), ((4,), ()), ((), ()), ((0, 3), (1, 3)), ((2, 3, 5), (3, 1)), ((37,), (37,))):
        yield call(array(dtype, *a), right(dtype, *b, seed=1))
    for layout in LAYOUTS[1:]:
        yield call(array(dtype, 4, 6, layout=layout), right(dtype, 4, 6, seed=1))
        yield call(array(dtype, 4, 6), right(dtype, 4, 6, layout=layout, seed=1))
    for number in (2, 1.5, True, np.float32(0.75), np.int8(3)):
        yield call(array(dtype, 3, 5), number)
        yield call(number, right(dtype, 3, 5))
    for other in OTHERS:
        if other != dtype:
            yield call(array(dtype, 3, 5), right(other, 3, 5, seed=1))


def _every_pair(dtype: str) -> Sample:
    x = special(dtype).values
    return call(Operand(x[:, None].copy()), Operand(x))


def binary(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 3, 5), array(dtype, 3, 5, seed=1))
    yield _every_pair(dtype)
    yield from _pairs(dtype)


def power(dtype: str) -> Iterator[Sample]:
    yield call(positive(dtype, 3, 5), array(dtype, 3, 5, seed=1))
    yield from _pairs(dtype, positive)
    for exponent in (0, 1, 2, 3, 0.5, -1.0, -2, 2.0, np.float32(2)):
        yield call(array(dtype, 4, 3), exponent)
        yield call(special(dtype), exponent)
    if dtype.startswith("float"):
        yield _every_pair(dtype)


def shift(dtype: str) -> Iterator[Sample]:
    if dtype.startswith("float"):
        return
    for sample in _pairs(dtype, positive):
        if not any(isinstance(a, float) for a in sample.args):
            yield sample
    amounts = [0, 1, 7, 8, 15, 31, 63]
    yield call(Operand(special(dtype).values[:, None].copy()), Operand(np.array(amounts, "int8")))


def in_place(dtype: str) -> Iterator[Sample]:
    for a, b in (((4, 5), (4, 5)), ((4, 5), (5,)), ((4, 5), ()), ((0, 3), (3,)), ((), ())):
        yield call(array(dtype, *a), positive(dtype, *b, seed=1))
    for layout in LAYOUTS[1:]:
        yield call(array(dtype, 4, 6, layout=layout), positive(dtype, 4, 6, seed=1))
    for number in (2, 1.5, True):
        yield call(array(dtype, 3, 5), number)
    for other in OTHERS:
        yield call(array(dtype, 3, 5), positive(other, 3, 5, seed=1))


def in_place_shift(dtype: str) -> Iterator[Sample]:
    if not dtype.startswith("float"):
        yield from (s for s in in_place(dtype) if not any(isinstance(a, float) for a in s.args))


def argument(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 3, 5))
    yield call(special(dtype))
    for operand in (*shapes(dtype), *layouts(dtype, 4, 6)):
        yield call(operand)
        if operand.values.ndim:
            yield call(operand, axis=0)
            yield call(operand, axis=-1, keepdims=True)


def reduction(dtype: str) -> Iterator[Sample]:
    yield from argument(dtype)
    for axis in ((0, 2), (1,), (), None, (0, 1, 2)):
        yield call(array(dtype, 3, 4, 5), axis=axis)
        yield call(array(dtype, 3, 4, 5, layout="transposed"), axis=axis, keepdims=True)


def scan(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 37))
    yield call(special(dtype))
    for operand in (*shapes(dtype), *layouts(dtype, 4, 6)):
        yield call(operand)
        if operand.values.ndim:
            yield call(operand, axis=0)
            yield call(operand, axis=-1, include_initial=True)
    yield call(array(dtype, 3, 5), axis=1, dtype="float64")


def clip(dtype: str) -> Iterator[Sample]:
    yield call(special(dtype), 0, 5)
    for operand in (*shapes(dtype), *layouts(dtype, 4, 6)):
        yield call(operand, 1, 4)
        yield call(operand, 1, None)
        yield call(operand, max=3)
        yield call(operand, array(dtype, seed=3), array(dtype, seed=4))
    yield call(array(dtype, 3, 4), array(dtype, 3, 1), array(dtype, 4))
    yield call(array(dtype, 3, 4), 4, 1)
    yield call(array(dtype, 3, 4), 0.5, 2.5)


def where(dtype: str) -> Iterator[Sample]:
    for condition in ((3, 5), (5,), (3, 1), ()):
        yield call(array("bool", *condition), array(dtype, 3, 5), array(dtype, 5, seed=1))
    for layout in LAYOUTS:
        yield call(array("bool", 4, 6, layout=layout), array(dtype, 4, 6, layout=layout), array(dtype, 4, 6, seed=1))
    yield call(array("bool", 0, 3), array(dtype, 0, 3), array(dtype, 3))
    yield call(array("bool", 7), array(dtype, 7), 1)
    yield call(array("bool", 7), 1.5, array(dtype, 7))
    for other in OTHERS:
        yield call(array("bool", 3, 5), array(dtype, 3, 5), array(other, 3, 5, seed=1))
    yield call(array(dtype, 3, 5), Operand(np.resize(special(dtype).values, 5)), array(dtype, 5))


FAMILIES = {f.__name__: f for f in (unary, binary, power, shift, in_place, in_place_shift, reduction, argument, scan, clip, where)}
