"""Code of the program that NumPy calls: in a first call, a recompile and later calls it runs as often as in plain execution."""
import numpy as np
import pytest

import tenon

ran = []


def note(value):
    ran.append(1)
    return value * 2


class Elements:
    """A sequence of three numbers that says when it is read."""

    def __len__(self):
        return len([ran.append(1)] * 3)

    def __getitem__(self, place):
        if place > 2:
            raise IndexError(place)
        ran.append(1)
        return float(place)


class GivesArray:
    def __array__(self, dtype=None, copy=None):
        ran.append(1)
        return np.ones(3)


class Overriding(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        ran.append(1)
        return getattr(ufunc, method)(*[np.asarray(x) for x in inputs], **keywords)


class Number:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        ran.append(1)
        return Number(self.value + 1)

    def __lt__(self, other):
        ran.append(1)
        return self.value < other.value


class Writer:
    def write(self, text):
        ran.append(1)


def numbers():
    for value in range(5):
        ran.append(1)
        yield float(value)


one, two = np.frompyfunc(note, 1, 1), np.frompyfunc(lambda a, b: note(a) + b, 2, 1)
objects = np.array([Number(3), Number(1), Number(2)], dtype=object)

PROGRAMS = {
    "frompyfunc": lambda a: one(np.sin(a)).astype(float) + a,
    "two arguments": lambda a: two(a, a[::-1]).astype(float) + a,
    "outer": lambda a: two.outer(a, a).astype(float) + 1,
    "reduce": lambda a: two.reduce(a) + a,
    "reduce of objects": lambda a: two.reduce(a.astype(object)) + a,
    "accumulate": lambda a: two.accumulate(a).astype(float) + a,
    "reduceat": lambda a: two.reduceat(a, [0, 2]).astype(float) + a[:2],
    "at": lambda a: (two.at(b := a.astype(object), [0, 1], 1.0), b)[1].astype(float) + a,
    "vectorize": lambda a: np.vectorize(note)(np.sin(a)) + a,
    "vectorize with a dtype": lambda a: np.vectorize(note, otypes=[float])(a) + a,
    "apply_along_axis": lambda a: np.apply_along_axis(lambda row: note(row).sum(), 0, a[None]) + a,
    "apply_over_axes": lambda a: np.apply_over_axes(lambda b, axis: note(b).sum(axis, keepdims=True), a[None], [0]) + a,
    "piecewise": lambda a: np.piecewise(a, [a < 0.5, a >= 0.5], [note, lambda b: note(b) + 1]) + 1,
    "fromfunction": lambda a: np.fromfunction(note, (5,)) + a,
    "fromiter": lambda a: np.fromiter(numbers(), float) + a,
    "a generator": lambda a: np.array(list(numbers())) + a,
    "arithmetic of objects": lambda a: (objects + 1).size + a,
    "sorted objects": lambda a: np.sort(objects)[0].value + a,
    "a subclass": lambda a: np.sin(a.view(Overriding)) + a,
    "a sequence": lambda a: np.asarray(Elements())[0] + a,
    "an array's own": lambda a: np.asarray(GivesArray())[0] + a,
    "a file": lambda a: (np.savetxt(Writer(), a), a + 1)[1],
    "a formatter": lambda a: (np.array2string(a, formatter={"float": lambda value: str(note(value))}), a + 1)[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_runs_as_often(name):
    fn = PROGRAMS[name]
    compiled, a = tenon.compile(fn), np.linspace(0.1, 1.0, 5)
    for given in (a, a, a.astype(np.float32), a + 1):
        ran.clear()
        expected, times = fn(given), len(ran)
        ran.clear()
        np.testing.assert_allclose(compiled(given), expected, rtol=1e-6)
        assert len(ran) == times > 0
