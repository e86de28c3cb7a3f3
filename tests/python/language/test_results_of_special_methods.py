"""Special methods that give what they may not: the error is plain execution's."""
import collections
import operator
from fractions import Fraction

import numpy as np
import pytest

import tenon


class Text:
    def __init__(self, value):
        self.value = value

    def __str__(self):
        return self.value

    __repr__ = __format__ = __index__ = lambda self, *_: self.value


@pytest.mark.parametrize("use", [
    lambda value: str(Text(value)),
    lambda value: repr(Text(value)),
    lambda value: ascii(Text(value)),
    lambda value: f"{Text(value)}",
    lambda value: f"{Text(value)!s}",
    lambda value: f"{Text(value)!r:>5}",
    lambda value: format(Text(value), "5"),
    lambda value: operator.index(Text(value)),
    lambda value: [1, 2, 3][Text(value)],
    lambda value: sum([], bytearray() if value == 1 else 0),
])
@pytest.mark.parametrize("value", ["a", 1, None, 2.5])
def test_the_error_is_that_of_plain_execution(use, value):
    def outcome(fn):
        try:
            return fn(value)
        except TypeError as error:
            return str(error)

    compiled = tenon.compile(use)
    assert [outcome(compiled), outcome(compiled)] == [outcome(use)] * 2


class Unknowing:
    """Leaves every operator to the other operand."""

    __add__ = __pow__ = __rpow__ = __divmod__ = __matmul__ = __iadd__ = __lt__ = lambda self, *_: NotImplemented


class Knowing(Unknowing):
    __rdivmod__ = __rpow__ = __radd__ = lambda self, other: f"{type(other).__name__} and Knowing"


@pytest.mark.parametrize("use", [
    lambda a, b: divmod(a, b),
    lambda a, b: pow(a, b),
    lambda a, b: pow(a, b, 5),
    lambda a, b: a ** b,
    lambda a, b: a + b,
    lambda a, b: a @ b,
    lambda a, b: a < b,
    lambda a, b: operator.ipow(a, b),
    lambda a, b: operator.iadd(a, b),
])
@pytest.mark.parametrize("others", [(Unknowing(), 2), (Unknowing(), int), (Unknowing(), Knowing()), (Knowing(), Unknowing()), (2, Knowing()), (Fraction(1, 3), int), (Fraction(1, 3), 2), (Fraction(1, 3), Fraction(2, 3)), (Fraction(1, 3), Knowing())])
def test_what_one_operand_does_not_know_is_asked_of_the_other(use, others):
    def outcome(fn):
        try:
            return fn(*others)
        except TypeError as error:
            return str(error)

    compiled = tenon.compile(use)
    assert [outcome(compiled), outcome(compiled)] == [outcome(use)] * 2


class ByValue:
    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return isinstance(other, ByValue) and self.value == other.value


@pytest.mark.parametrize("hold", [lambda key: {key: 1}, lambda key: {key}, lambda key: {(key, 2): 1}, lambda key: collections.OrderedDict({key: 1})])
def test_a_key_that_was_written_to_belongs_where_its_new_hash_says(hold):
    def run(key, x):
        key.value += 1
        return hold(key), x + 1

    compiled = tenon.compile(run)
    for value in range(3):
        held, _ = compiled(ByValue(value), np.ones(2))
        assert ByValue(value + 1) in held or (ByValue(value + 1), 2) in held


class Refusing:
    def __iter__(self):
        raise TypeError("mine")


@pytest.mark.parametrize("use", [lambda items: [*items], lambda items: (*items, 1), lambda items: {*items}, lambda items: [].extend(items), lambda items: max(*items)])
def test_what_iteration_raises_is_what_a_star_raises(use):
    with pytest.raises(TypeError, match="^mine$"):
        tenon.compile(use)(Refusing())
