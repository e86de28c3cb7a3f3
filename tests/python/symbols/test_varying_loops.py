"""Loops whose rounds, and orders whose items, are others in call after call."""
import math
import random

import numpy as np
import pytest

import tenon
from tests.python.conftest import same

torch = pytest.importorskip("torch")

IMAGE = torch.linspace(0, 1, 3 * 16 * 20).reshape(3, 16, 20)
LINE = torch.linspace(-1, 1, 60)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


def storm(fn, arguments, most, caplog, calls=120):
    """Compares `calls` calls with plain ones; nothing new is compiled in the last two thirds, and no limit is reached."""
    tenon.reset()
    compiled = tenon.compile(fn)
    draw = random.Random(5)
    settled = None
    for call in range(calls):
        args = arguments(draw)
        random.seed(call)
        torch.manual_seed(call)
        want = fn(*args)
        random.seed(call)
        torch.manual_seed(call)
        same(compiled(*args), want)
        if call == calls // 3:
            settled = tenon.stats()["graphs"]
    stats = tenon.stats()
    assert stats["graphs"] <= most and stats["graphs"] == settled, stats
    assert "recompile limit" not in caplog.text
    return stats


def sieve(n):
    marks = np.ones(n + 1, dtype=bool)
    marks[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if marks[i]:
            marks[i * i :: i] = False
    return np.nonzero(marks)[0]


def sieve_of_torch(n):
    marks = torch.ones(n + 1, dtype=torch.bool)
    marks[:2] = False
    for i in range(2, math.isqrt(n) + 1):
        if marks[i]:
            marks[i * i :: i] = False
    return torch.nonzero(marks).squeeze(1)


def odd_sieve(n):
    marks = np.ones(n // 2, dtype=bool)
    i = 3
    while i * i <= n:
        if marks[i // 2]:
            marks[i * i // 2 :: i] = False
        i += 2
    return 2 * np.flatnonzero(marks) + 1


@pytest.mark.parametrize("fn", [sieve, sieve_of_torch, odd_sieve])
def test_a_sieve_is_seen_after_a_round(fn, caplog):
    storm(fn, lambda draw: (draw.randint(50, 3000),), 4, caplog)


def by_number(x):
    for i in torch.randperm(4).tolist():
        if i == 0:
            x = x * 1.1
        elif i == 1:
            x = x + 0.2
        elif i == 2:
            x = x.clamp(0, 1)
        else:
            x = x.sqrt()
    return x


def by_function(x):
    changes = [lambda x: x * 1.1, lambda x: x + 0.2, lambda x: x.clamp(0, 1), torch.sqrt]
    random.shuffle(changes)
    for change in changes:
        x = change(x)
    return x


def by_factor(x):
    order = list(range(4))
    random.shuffle(order)
    for i in order:
        factor = torch.empty(1).uniform_(0.5, 1.5).item()
        x = x * factor if i % 2 else (x - x.mean()) * factor + i
    return x


@pytest.mark.parametrize("fn", [by_number, by_function, by_factor])
def test_a_drawn_order_shares_the_graphs_of_its_rounds(fn, caplog):
    storm(fn, lambda draw: (IMAGE,), 18, caplog)


def sum_between(x, start, stop, step):
    total = x[0]
    for i in range(start, stop, step):
        total = total + x[i] * i
    return total


def repeated(x, n):
    for k in range(n):
        x = x * 0.5 + k
    return x


def test_loops_with_varying_bounds_are_compiled_round_by_round(caplog):
    storm(sum_between, lambda draw: (LINE, draw.randint(0, 20), draw.randint(20, 60), draw.randint(1, 5)), 12, caplog)
    storm(repeated, lambda draw: (LINE, draw.randint(0, 90)), 12, caplog)


def test_a_loop_left_to_python_ends_as_the_program_does():
    def first_above(x, limit):
        for i in range(len(x)):
            if x[i] > limit:
                return i, x[i:] * 2
        return -1, x

    compiled = tenon.compile(first_above)
    for n in range(20, 60):
        x = LINE[:n]
        for limit in (-2.0, 0.1, 5.0):
            same(compiled(x, limit), first_above(x, limit))


def test_functions_of_ints_are_numbers_of_their_own():
    compiled = tenon.compile(lambda x, n: (x[: n.bit_length()] * math.isqrt(n), n.bit_length()))
    for n in [5, 7, 1000, 2**40, 2**52 - 1, 3, 0, 17, 2**20 - 1, 2**20]:
        same(compiled(LINE, n), (LINE[: n.bit_length()] * math.isqrt(n), n.bit_length()))
    assert tenon.stats()["graphs"] <= 5 and tenon.stats()["graph_breaks"] == 0, tenon.stats()
    with pytest.raises(ValueError):
        compiled(LINE, -4)
    for n in (2**53 + 1, 2**60 + 12345):
        same(compiled(LINE, n), (LINE[: n.bit_length()] * math.isqrt(n), n.bit_length()))
