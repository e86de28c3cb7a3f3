"""Errors of C code that the program catches: they name what plain execution has, not what stands for it."""
from __future__ import annotations

import math

import numpy as np
import pytest

import tenon

PROGRAMS = {
    "format": lambda a: format(a, ".2f"),
    "format_map": lambda a: "{x:.1f}".format_map({"x": a}),
    "hexadecimal": lambda a: format(a, "x"),
    "join": lambda a: ",".join([a]),
    "round": lambda a: round(a),
    "trunc": lambda a: math.trunc(a),
    "length": lambda a: len(a),
    "items": lambda a: sum(a),
    "less": lambda a: a < "x",
    "list times": lambda a: [1, 2] * a,
    "tuple times": lambda a: a * (1, 2),
}
VALUES = {"array": np.array([1.0, 1.5, -2.0]), "float": np.float64(2.5), "int": np.int64(2), "no dimensions": np.array(2)}


@pytest.mark.parametrize("computed", (False, True))
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_caught_errors_are_plain_ones(name, value, computed):
    if name == "items" and value == "no dimensions":
        pytest.skip("NumPy's words for iteration over an array without dimensions differ")

    def run(a):
        b = a + 0 if computed else a
        try:
            return PROGRAMS[name](b)
        except (TypeError, ValueError) as error:
            return type(error), str(error)

    want, compiled = run(VALUES[value]), tenon.compile(run)
    for _ in range(2):
        got = compiled(VALUES[value])
        assert type(got) is type(want) and repr(got) == repr(want)
