"""What became of one call of a NumPy function under tenon.compile."""
from __future__ import annotations

import dataclasses
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tenon
from tests.array_api.families import FAMILIES
from tests.array_api.functions import FUNCTIONS
from tests.array_api.judge import disagreement, with_zeros_like
from tests.array_api.operands import Operand, made
from tests.array_api.sample import Sample
from tests.walks.verdict import Verdict, how_it_ran

DTYPES = {name: np.dtype(name) for name in ("float64", "float32", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool")}
# What such arrays hold is whatever lay in memory.
UNDEFINED = {"empty", "empty_like"}
# Their factors are theirs up to signs, and need not be the same for a matrix of another precision.
SAME_PRECISION = {"linalg.eigh", "linalg.qr", "linalg.svd", "linalg.matrix_rank", "nextafter", "arange", "linspace", "argsort"}
# The order of elements that are equal is not said, unless it is asked to be stable.
UNSTABLE = {"sort"}

# Whether infinities of both signs meet before a NaN silences them is a matter of the order in which NumPy goes through the elements.
ORDERED = {FAMILIES[name] for name in ("reduction", "scan", "product")}


@dataclasses.dataclass(frozen=True)
class Entry:
    """A function of the standard and where its samples come from."""

    name: str
    function: Callable
    family: Callable[[str], Iterator[Sample]]


def _function(name: str) -> Callable | None:
    """NumPy's function, a property, or the operator of that name; None where this NumPy has none."""
    if name.startswith("__"):
        return getattr(operator, name)
    if name.startswith("array."):
        return operator.attrgetter(name.removeprefix("array."))
    try:
        return operator.attrgetter(name)(np)
    except AttributeError:
        return None


def entries() -> dict[str, Entry]:
    """All functions of the standard that NumPy has, by name."""
    found = {name: Entry(name, function, FAMILIES[family]) for name, family in FUNCTIONS.items() if (function := _function(name))}
    return dict(sorted(found.items()))


def samples_of(entry: Entry, dtype: str) -> Iterator[Sample]:
    """The calls of a function with arrays of a dtype."""
    yield from entry.family(dtype)


@dataclasses.dataclass
class Outcome:
    """What a call did: its result, what its arguments hold afterwards, what it raised, what it warned of."""

    result: Any
    arguments: Any
    error: BaseException | None
    warned: list[str]


def _call(function: Callable, sample: Sample) -> Outcome:
    args, kwargs = made(sample.args), made(sample.kwargs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, error = function(*args, **kwargs), None
        except Exception as raised:  # noqa: BLE001: a compiled call has to raise the same
            result, error = None, raised
    return Outcome(result, args, error, sorted(str(w.message) for w in caught))


def judge(entry: Entry, sample: Sample) -> Verdict:
    """Runs one call plainly and compiled, twice, and compares results, writes to arguments, exceptions and warnings. A call that fails or
    warns has to run plainly, so nothing is said of how it ran."""
    want = _call(entry.function, sample)
    tenon.reset()
    program = _program(entry.function)
    compiled = tenon.compile(program)
    exact = None if want.error or entry.name in SAME_PRECISION else _exact(entry, sample)
    for _ in range(2):
        if what := _difference(entry, sample, _call(compiled, sample), want, exact):
            return Verdict("wrong", f"{sample}: {what}")
    verdict = Verdict("skipped") if want.error or want.warned else how_it_ran(lambda: _explained(program, sample))
    return dataclasses.replace(verdict, why=f"{sample}: {verdict.why}" if verdict.why else "")


def _difference(entry: Entry, sample: Sample, got: Outcome, want: Outcome, exact: Outcome | None) -> str | None:
    if want.error or got.error:
        same = type(got.error) is type(want.error) and str(got.error) == str(want.error)
        return None if same else f"{got.error!r} instead of {want.error!r}"
    if entry.name in UNDEFINED:
        return disagreement(_undefined(got.result), _undefined(want.result))
    result = got.result
    if entry.name in UNSTABLE and not sample.kwargs.get("stable"):
        result = with_zeros_like(result, want.result, made(sample.args[0]), sample.kwargs.get("axis", -1))
    if what := disagreement(result, want.result, exact and exact.result) or disagreement(got.arguments, want.arguments, exact and exact.arguments):
        return what
    same = got.warned == want.warned or entry.family in ORDERED and sample.holds_nan()
    return None if same else f"warns {got.warned} instead of {want.warned}"


def _undefined(array: np.ndarray) -> tuple:
    return type(array), array.dtype, array.shape


def _explained(program: Callable, sample: Sample) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tenon.explain(program)(*made(sample.args), **made(sample.kwargs))


def _program(function: Callable) -> Callable:
    def program(*args, **kwargs):
        return function(*args, **kwargs)

    return program


def _exact(entry: Entry, sample: Sample) -> Outcome | None:
    """The call in extended precision; None where it cannot be made."""

    def widened(value: Any) -> Any:
        if isinstance(value, Operand) and value.values.dtype.kind == "f":
            return Operand(value.values.astype(np.longdouble if value.values.dtype == np.float64 else np.float64), value.layout)
        if isinstance(value, (list, tuple)):
            return type(value)(widened(item) for item in value)
        return value

    wide = _call(entry.function, dataclasses.replace(sample, args=widened(sample.args)))
    return None if wide.error else wide
