"""Functions of floats that vary, and of floats that the graph computes: one variant for all values."""
from __future__ import annotations

import math

import pytest

import tenon

torch = pytest.importorskip("torch")

X = torch.arange(1.0, 4.0)
VALUES = (1.37, 2.5, 3.125, 4.75, 0.005, 1.37, 2.675, 1e-7, 1e17)

FUNCTIONS = {
    "round_to_digits": lambda v: round(v, 2),
    "round_to_no_digits": lambda v: round(v, 0),
    "round_by_name": lambda v: round(v, ndigits=3),
    "round_to_tens": lambda v: round(v * 100, -1),
    "hypot": lambda v: math.hypot(v, 2.0),
    "atan2": lambda v: math.atan2(v, 1),
    "log_to_base": lambda v: math.log(v, 3),
    "pow": lambda v: math.pow(v, 1.5),
    "fmod": lambda v: math.fmod(7.5, v),
    "copysign": lambda v: math.copysign(v, -1),
    "degrees": lambda v: math.degrees(v) + math.radians(v),
    "erf": lambda v: math.erf(v) + math.erfc(v),
    "cbrt": lambda v: math.cbrt(v),
    "divmod": lambda v: divmod(v, 0.7),
    "nested": lambda v: round(math.hypot(round(v, 1), v), 3) / 2,
}


def same_at_all_values(check, fn, inputs, most):
    compiled = tenon.compile(fn)
    for args in inputs * 2:
        check.same(compiled(*args), fn(*args))
    stats = tenon.stats()
    assert stats["graphs"] <= most and (stats["graph_breaks"], stats["eager_fallbacks"]) == (0, 0), stats


@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_that_vary(check, name):
    function = FUNCTIONS[name]
    same_at_all_values(check, lambda x, v: (x * 2, function(v)), [(X, v) for v in VALUES], 2)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "divmod"])
def test_tensors_meet_what_they_give(check, name):
    function = FUNCTIONS[name]
    same_at_all_values(check, lambda x, v: x * function(v) + 1, [(X, v) for v in VALUES[:5]], 2)


@pytest.mark.parametrize(
    "question",
    [lambda v: math.isclose(v, 2.5), math.isnan, math.isinf, math.isfinite, lambda v: math.isclose(v, 2.5 + 1e-12)],
    ids=["isclose", "isnan", "isinf", "isfinite", "very_close"],
)
def test_questions(check, question):
    inputs = [(X, v) for v in (1.5, 2.5, 3.5, math.inf, math.nan, 0.5, 2.5, -math.inf)]
    compiled = tenon.compile(lambda x, v: x + 1 if question(v) else x - 1)
    for args in inputs * 2:
        check.same(compiled(*args), args[0] + 1 if question(args[1]) else args[0] - 1)
    assert tenon.stats()["graphs"] <= 4


def test_what_python_refuses():
    compiled = tenon.compile(lambda x, v: (x + 1, math.log(v, 3), math.fmod(1.5, v)))
    for v in (1.5, 2.5, 3.5):
        compiled(X, v)
    with pytest.raises(ValueError, match="math domain error|expected a"):
        compiled(X, -2.5)
    with pytest.raises(ValueError, match="math domain error|expected a"):
        compiled(X, math.inf) and compiled(X, 0.0)


def metrics(x):
    loss = (x * 0.25).sum().item()
    return {"loss": round(loss, 4), "half": round(loss / 2, 2), "abs": abs(loss - 100), "text": f"{round(loss, 1)} of {round(loss, 2):.3f}"}, x + 1


def test_rounded_elements_leave_the_graph(check):
    same_at_all_values(check, metrics, [(torch.arange(n, dtype=torch.float32) + 0.125,) for n in (3, 4, 5, 9, 17)], 2)


def test_rounded_elements_that_are_used(check):
    def fn(x):
        mean = round(x.mean().item(), 2)
        kept = isinstance(mean, float), float(mean), [mean]
        return x - mean, kept, mean > 1, mean * 2, {mean: 1}

    compiled = tenon.compile(fn)
    for n in (3, 4, 5, 9):
        x = torch.arange(n, dtype=torch.float32)
        check.same(compiled(x), fn(x))
