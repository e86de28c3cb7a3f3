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


def changing(number):
    """Numbers that vary from call to call: from the second on something stands for them."""
    return [number, number + 2, number + 4, number + 5]


OF_NUMBERS = {
    "tuple plus": lambda n: (1,) + (n + n),
    "list plus": lambda n: [1] + (n + n),
    "text plus": lambda n: "a" + (n + n),
    "matrix product": lambda n: (n + n) @ 2,
    "called": lambda n: (n + n)(),
    "attribute": lambda n: (n + n).missing,
    "item": lambda n: (n + n)["k"],
    "length": lambda n: len(n + n),
    "items": lambda n: list(n + n),
    "starred": lambda n: [*(n + n)],
    "starred argument": lambda n: max(*(n + n)),
    "double-starred": lambda n: dict(**(n + n)),
    "double-starred to a function": lambda n: changing(**(n + n)),
    "searched": lambda n: 1 in (n + n),
    "iterator": lambda n: iter(n + n),
    "of an iterator": lambda n: next(n + n),
    "format": lambda n: "%d %d" % (n + n),
    "wrong code": lambda n: format(n + n, "zz"),
    "joined": lambda n: ",".join([n + n]),
    "item by number": lambda n: [1, 2][n + n + 0.5],
    "number of characters": lambda n: "a" * (n + 0.5),
    "class": lambda n: isinstance(1, n + n),
    "base class": lambda n: issubclass(int, n + n),
    "less": lambda n: (n + n) < "x",
    "added to a set": lambda n: {1} | (n + n),
    "added to a dict": lambda n: {} | (n + n),
    "key": lambda n: {}[n + n],
}


@pytest.mark.parametrize("number", (3, 2.5))
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_errors_name_the_class_of_a_number_that_varies(name, number):
    def run(n):
        try:
            return OF_NUMBERS[name](n)
        except Exception as error:
            return type(error), str(error), getattr(error, "name", None), type(getattr(error, "obj", None))

    compiled = tenon.compile(run)
    for each in changing(number):
        assert compiled(each) == run(each)


def unpacked(n):
    first, second = n
    return first + second


@pytest.mark.parametrize("use", (unpacked, len, lambda g: g + 1, lambda g: g[0], lambda g: g(), lambda g: g.missing, lambda g: (1,) + g))
def test_errors_name_generators(use):
    def run(n):
        try:
            return use(i for i in range(n))
        except (TypeError, ValueError, AttributeError) as error:
            return str(error)

    assert tenon.compile(run)(3) == run(3)


def test_text_of_a_generator_names_its_class():
    def run():
        return str(i for i in range(3)).split()[0], repr(iter([1]))[:9]

    assert tenon.compile(run)() == run()


class Said:
    @property
    def by_property(self):
        raise AttributeError("by a property")

    def __getattr__(self, name):
        raise AttributeError("no " + name) if name == "by_getattr" else AttributeError("another", name="n", obj=3)


class Quiet:
    @property
    def by_property(self):
        raise AttributeError("by a property")


class Meta(type):
    @property
    def by_metaclass(cls):
        raise AttributeError("by the metaclass")


class OfMeta(metaclass=Meta):
    pass


LOOKUPS = (lambda: Said().by_property, lambda: Said().by_getattr, lambda: Said().else_where, lambda: Quiet().by_property, lambda: Quiet().missing,
           lambda: OfMeta.by_metaclass, lambda: Quiet.missing, lambda: math.missing, lambda: super(Quiet, Quiet()).missing, lambda: undefined)  # noqa: F821


@pytest.mark.parametrize("look_up", LOOKUPS)
def test_failed_lookups_say_what_plain_ones_say(look_up):
    def run():
        try:
            return look_up()
        except (AttributeError, NameError) as error:
            return type(error), error.args, error.name, type(getattr(error, "obj", None))

    assert tenon.compile(run)() == run()


def test_unpacking_takes_one_item_too_many_at_most():
    def run(log):
        def items():
            for n in range(5):
                log.append(n)
                yield n

        try:
            first, second = items()
        except ValueError as error:
            return str(error)

    got, want = [], []
    assert tenon.compile(run)(got) == run(want) and got == want == [0, 1, 2]


def test_a_cause_that_is_no_exception():
    def run(n):
        try:
            raise ValueError from n
        except TypeError as error:
            return str(error)

    assert tenon.compile(run)(3) == run(3)
