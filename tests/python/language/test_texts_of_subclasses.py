"""str(), f-strings and formats of objects whose class gives them a text, as in plain execution."""
import decimal
import enum
import fractions
import pathlib

import pytest

import tenon

np = pytest.importorskip("numpy")


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Word(enum.StrEnum):
    A = "x"


class Old(str, enum.Enum):
    X = "x"


class Bits(enum.IntFlag):
    A = 1
    B = 2


class Plain(enum.Enum):
    P = 3


class Repeated(int):
    def __repr__(self):
        return "R"


class Said(float):
    def __str__(self):
        return "S"



class AsTuple(tuple):
    def __repr__(self):
        return "T"


class Borrowed(int):
    __str__ = int.__repr__

    def __repr__(self):
        return "B"


VALUES = [Number.TWO, Word.A, Old.X, Bits.A, Bits.A | Bits.B, Plain.P, Repeated(3), Said(2), AsTuple((1, 2)), Borrowed(7), True, 2.5, None, 10**30, 1 + 2j, b"a",
          decimal.Decimal("1.10"), fractions.Fraction(1, 3), pathlib.PurePosixPath("/a/b")]


@pytest.mark.parametrize("value", VALUES, ids=[type(v).__name__ + str(i) for i, v in enumerate(VALUES)])
def test_texts_are_those_of_plain_execution(value):
    def texts(x):
        return str(value), repr(value), f"{value}", f"{value!s:>6}", f"{value!r}", format(value), "%s %r" % (value, value), "{} {!s}".format(value, value), x * 2

    want, got = texts(np.ones(2)), tenon.compile(texts)(np.ones(2))
    assert got[:-1] == want[:-1]


@pytest.mark.parametrize("value, spec", [(Number.TWO, "04d"), (Bits.B, "b"), (Word.A, ">3"), (Said(2), ".3f"), (Repeated(3), "x"), (decimal.Decimal("1.25"), ".1f"), (1234567, ",")])
def test_formats_with_a_specification(value, spec):
    def text(x):
        return f"{value:{spec}}", format(value, spec), x * 2

    assert tenon.compile(text)(np.ones(2))[:2] == text(np.ones(2))[:2]
