"""Branches on elements of which one way does nothing but raise: the other is assumed, and checked by each run."""
from __future__ import annotations

import copy

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

GOOD, BAD = torch.linspace(0.5, 2, 12).reshape(3, 4), torch.linspace(-1, 1, 12).reshape(3, 4)
MIXED = (GOOD, BAD, GOOD, GOOD[:2], BAD, BAD[:1], GOOD, BAD)


def from_text(text):
    """A function as text, because pytest rewrites assertions."""
    space = {"torch": torch, "np": np, "tenon": tenon}
    exec(text, space)
    return space["fn"]


def outcome(fn, x):
    torch.manual_seed(5)
    given = copy.deepcopy(x)
    try:
        return fn(given), None, given, torch.rand(1)
    except Exception as error:
        return None, (type(error), str(error)), given, torch.rand(1)


def compare(check, fn, inputs):
    compiled = tenon.compile(fn)
    for x in inputs:
        check.same(outcome(compiled, x), outcome(fn, x))
    return tenon.stats()


PROGRAMS = {
    "assertion": "    assert (x > 0).all()\n    return x * 2",
    "message": "    y = x + 1\n    assert (y > 1).all(), f'least {x.min().item():.3f} of {tuple(x.shape)}'\n    return y",
    "two": "    assert torch.isfinite(x).all() and x.min() > 0, 'odd'\n    return x.log()",
    "raise": "    if (x < 0).any():\n        raise ValueError(f'{tuple(x.shape)}')\n    return x.sqrt()",
    "negated": "    if not torch.all(x > 0):\n        raise RuntimeError('not positive')\n    return x.sqrt()",
    "loop": "    for i in range(3):\n        x = x - 0.1\n        if x.min() < 0:\n            raise StopIteration(i)\n    return x",
    "written": "    x += 1\n    if x.min() < 1:\n        x.zero_()\n        raise ValueError('written')\n    x -= 0.5\n    return x.sum()",
    "random": "    noise = torch.rand(3)\n    assert x.min() > 0\n    return noise, torch.rand(2) + x.sum()",
    "in_a_mode": "    with torch.no_grad():\n        assert (x > 0).all()\n    return x * 3",
    "finally": "    try:\n        assert (x > 0).all()\n        return x * 3\n    finally:\n        x += 1",
    "arrays": "    a = x.numpy()\n    a += 1\n    assert np.all(a > 1), 'array'\n    return a * 2",
    "nested": "    def inner(t):\n        if t.sum() < 0:\n            raise KeyError('inner')\n        return t * 2\n"
    "    try:\n        return inner(x[:, :2])\n    except KeyError as error:\n        return x + 1",
    "number": "    loss = (x * x).mean().item()\n    if loss > 8:\n        raise OverflowError(f'{loss:.3f}')\n    least = x.min().item()\n    assert least >= 0, 'low'\n    return loss, x * 2",
    "int": "    count = (x < 0).sum().item()\n    if count != 0:\n        raise ValueError(f'{count} below 0')\n    return x * 2",
    "chain": "    least, rows = x.min().item(), x.shape[0]\n    assert 0 < least < rows + 1, rows\n    return x * least",
    "finite": "    import math\n    total = x.log().sum().item()\n    if not math.isfinite(total):\n        raise FloatingPointError('nan')\n    assert not math.isnan(total) and not math.isinf(total)\n    return x * 2",
    "after_a_break": "    y = x + 1\n    tenon.graph_break()\n    assert y.min() > 1\n    return y * 2",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_holds_and_what_does_not(check, name):
    compare(check, from_text("def fn(x):\n" + PROGRAMS[name]), MIXED)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "after_a_break"])
def test_what_holds_costs_no_break(check, name):
    stats = compare(check, from_text("def fn(x):\n" + PROGRAMS[name]), (GOOD, GOOD * 2, GOOD))
    assert (stats["graph_breaks"], stats["eager_fallbacks"]) == (0, 0)


def test_order_of_elements_is_no_assumption(check):
    def fn(x):
        ends = [x[0, 0].item(), x[-1, -1].item()]
        if sorted(ends) != ends:
            raise ValueError("falls")
        if x.sum().item() in (1.0, 2.0):
            raise KeyError("whole")
        return x * 2

    compare(check, fn, (*MIXED, GOOD.flip(0).flip(1), torch.full((1, 4), 0.25), GOOD))


def test_what_fails_often_is_not_assumed(check):
    stats = compare(check, from_text("def fn(x):\n" + PROGRAMS["raise"]), (BAD,) * 6)
    assert stats["eager_fallbacks"] == 2 and stats["graph_breaks"] == 1


def test_writes_to_objects_wait_for_the_check(check):
    def fn(x, log):
        log.append(len(log))
        if x.min() < 0:
            raise ValueError
        log.append("checked")
        return x + 1

    compiled, ours, plain = tenon.compile(fn), [], []
    for x in (GOOD, BAD, GOOD, BAD, BAD, GOOD):
        for call, log in ((compiled, ours), (fn, plain)):
            try:
                call(x, log)
            except ValueError:
                log.append("raised")
        assert ours == plain


def test_handlers_of_the_same_function_are_branches(check):
    def fn(x):
        try:
            if x.min() < 0:
                raise ValueError("negative")
        except ValueError as error:
            return str(error), x + 1
        return "positive", x * 2

    stats = compare(check, fn, MIXED)
    assert stats["eager_fallbacks"] == 0


def test_whole_graphs(check):
    fn = from_text("def fn(x):\n" + PROGRAMS["message"])
    compiled = tenon.compile(fn, fullgraph=True)
    for x in MIXED:
        check.same(outcome(compiled, x), outcome(fn, x))


def test_backends_written_in_python_break(check):
    fn = from_text("def fn(x):\n" + PROGRAMS["message"])
    compiled = tenon.compile(fn, backend=lambda graph, _: graph.forward)
    for x in MIXED:
        check.same(outcome(compiled, x), outcome(fn, x))
    assert tenon.stats()["graph_breaks"] > 0
