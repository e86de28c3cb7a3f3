"""Samples of products, matrices and Fourier transforms."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.array_api.elementwise import layouts, shapes
from tests.array_api.operands import Operand, array, well_conditioned
from tests.array_api.sample import Sample, call


def product(dtype: str) -> Iterator[Sample]:
    for a, b in (((4,), (4,)), ((3, 4), (4, 4)), ((2, 3, 4), (4, 4)), ((2, 1, 4, 4), (3, 4, 4)), ((4, 4), (4,)), ((4,), (4, 4)), ((0, 4), (4, 4)), ((4, 0), (0, 4)), ((37, 16), (16, 16))):
        yield call(array(dtype, *a), array(dtype, *b, seed=1))
    for layout in ("transposed", "reversed", "spread", "one"):
        yield call(array(dtype, 6, 6, layout=layout), array(dtype, 6, 6, seed=1))
        yield call(array(dtype, 6, 6), array(dtype, 6, 6, layout=layout, seed=1))
    for other in ("float32", "int8", "bool"):
        yield call(array(dtype, 3, 3), array(other, 3, 3, seed=1))
    yield call(array(dtype, 2, 3), array(dtype, 2, 3))


def attribute(dtype: str) -> Iterator[Sample]:
    for operand in (*shapes(dtype), *layouts(dtype, 4, 6)):
        yield call(operand)


def matrix_transpose(dtype: str) -> Iterator[Sample]:
    for operand in (array(dtype, 2, 3, 4), array(dtype, 0, 2), array(dtype, 3), *layouts(dtype, 4, 6)):
        yield call(operand)


def tensordot(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 3, 4), array(dtype, 4, 5), axes=1)
    yield call(array(dtype, 3, 4), array(dtype, 3, 4), axes=2)
    yield call(array(dtype, 2), array(dtype, 3), axes=0)
    yield call(array(dtype, 2, 3, 4), array(dtype, 4, 3, seed=1), axes=((1, 2), (1, 0)))
    yield call(array(dtype, 3, 4, layout="reversed"), array(dtype, 4, 5, layout="transposed"), axes=1)


def linalg_cross(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 4, 3), array(dtype, 4, 3, seed=1))
    yield call(array(dtype, 3), array(dtype, 2, 3, seed=1))
    yield call(array(dtype, 3, 4, layout="reversed"), array(dtype, 3, 4), axis=0)


def linalg_diagonal(dtype: str) -> Iterator[Sample]:
    for operand in (array(dtype, 2, 3, 4), array(dtype, 0, 2), *layouts(dtype, 4, 6)):
        for offset in (0, 1, -2):
            yield call(operand, offset=offset)


def linalg_trace(dtype: str) -> Iterator[Sample]:
    yield from linalg_diagonal(dtype)
    yield call(array(dtype, 4, 4), dtype="float64")


def square_matrix(dtype: str) -> Iterator[Sample]:
    yield call(well_conditioned(dtype, 4, 4))
    yield call(well_conditioned(dtype, 2, 3, 3))
    yield call(Operand(well_conditioned(dtype, 4, 4).values, "transposed"))
    yield call(Operand(np.zeros((0, 0), dtype)))


def matrix(dtype: str) -> Iterator[Sample]:
    for shape in ((4, 4), (5, 3), (3, 5), (2, 4, 3)):
        yield call(array(dtype, *shape))
    yield call(array(dtype, 4, 3, layout="transposed"))


def linalg_matrix_norm(dtype: str) -> Iterator[Sample]:
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        yield call(array(dtype, 3, 4), ord=order)
    yield call(array(dtype, 2, 3, 4, layout="reversed"), keepdims=True)


def linalg_vector_norm(dtype: str) -> Iterator[Sample]:
    for order in (0, 1, 2, 3, 0.5, -1, np.inf, -np.inf):
        yield call(array(dtype, 7), ord=order)
        yield call(array(dtype, 3, 4), ord=order, axis=1, keepdims=True)
    for operand in layouts(dtype, 4, 6):
        yield call(operand)
        yield call(operand, axis=(0, 1))


def linalg_matrix_power(dtype: str) -> Iterator[Sample]:
    for n in (0, 1, 2, 3, 5):
        yield call(array(dtype, 3, 3), n)
    yield call(well_conditioned(dtype, 2, 3, 3), -1)


def linalg_outer(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 3), array(dtype, 4))
    yield call(array(dtype, 3, layout="reversed"), array("float32", 0))
    yield call(array(dtype, 3, 2), array(dtype, 4))


def linalg_solve(dtype: str) -> Iterator[Sample]:
    yield call(well_conditioned(dtype, 3, 3), array(dtype, 3))
    yield call(well_conditioned(dtype, 2, 3, 3), array(dtype, 2, 3, 2))


def transform(dtype: str) -> Iterator[Sample]:
    for operand in (array(dtype, 8), array(dtype, 7), *layouts(dtype, 4, 6)):
        yield call(operand)
        yield call(operand, n=5, norm="ortho")
    yield call(array(dtype, 4, 6), axis=0)


def transform_all(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 4, 6))
    yield call(array(dtype, 4, 6, layout="reversed"), axes=(0, 1), norm="forward")
    yield call(array(dtype, 2, 3, 4), s=(4, 4), axes=(1, 2))


def fft_fftshift(dtype: str) -> Iterator[Sample]:
    yield call(array(dtype, 7))
    for operand in layouts(dtype, 4, 6):
        yield call(operand)
        yield call(operand, axes=1)


FAMILIES = {f.__name__: f for f in (product, attribute, matrix_transpose, tensordot, square_matrix, matrix, transform, transform_all)}
FAMILIES |= {
    f.__name__.replace("_", ".", 1): f
    for f in (linalg_cross, linalg_diagonal, linalg_trace, linalg_matrix_norm, linalg_vector_norm, linalg_matrix_power, linalg_outer, linalg_solve, fft_fftshift)
}
