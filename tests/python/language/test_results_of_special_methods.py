"""Special methods that give what they may not: the error is plain execution's."""
import operator

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
