"""C code that calls a function back on items: the function, and the program, see the items themselves."""
import functools
import itertools

import numpy as np
import pytest

import tenon


def rows():
    return [[np.ones(2), 1], [np.zeros(2), 2], [np.full(2, 3.0), 1]]


@pytest.mark.parametrize("take", [
    lambda rows: list(map(lambda row: row, rows)),
    lambda rows: list(filter(lambda row: row[1] > 0, rows)),
    lambda rows: list(itertools.filterfalse(lambda row: row[1] > 1, rows)),
    lambda rows: list(itertools.takewhile(lambda row: row[1] < 2, rows)),
    lambda rows: list(itertools.dropwhile(lambda row: row[1] < 2, rows)),
    lambda rows: list(itertools.accumulate(rows, lambda last, row: row)),
    lambda rows: list(itertools.accumulate(rows, func=lambda last, row: last)),
    lambda rows: [row for _, group in itertools.groupby(rows, key=lambda row: row[1]) for row in group],
    lambda rows: [functools.reduce(lambda last, row: row, rows)],
    lambda rows: [functools.reduce(lambda last, row: last, rows, rows[1])],
    lambda rows: sorted(rows, key=lambda row: row[1]),
    lambda rows: [max(rows, key=lambda row: row[1])],
])
def test_items_are_the_same_objects(take):
    def run(rows):
        taken = take(rows)
        for row in taken[:1]:
            row[1] += 0.25
        return [next(i for i, row in enumerate(rows) if row is each) for each in taken], [row[0] * 2 for row in taken]

    compiled, ours, plain = tenon.compile(run), rows(), rows()
    for _ in range(3):
        np.testing.assert_equal(compiled(ours), run(plain))
        np.testing.assert_equal(ours, plain)


class Counting:
    calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * self.calls


def test_objects_that_are_called_back():
    ours, plain = Counting(), Counting()

    def run(function, xs):
        return list(map(function, xs)), function.calls

    compiled, xs = tenon.compile(run), [np.ones(2), np.full(2, 3.0)]
    for _ in range(3):
        np.testing.assert_equal(compiled(ours, xs), run(plain, xs))


def test_functions_among_the_items():
    def composed(x):
        return functools.reduce(lambda f, g: lambda y: f(g(y)), [lambda y: y + 1, lambda y: y * 2], np.negative)(x)

    compiled = tenon.compile(composed)
    for x in (np.ones(2), np.zeros(2)):
        np.testing.assert_equal(compiled(x), composed(x))
