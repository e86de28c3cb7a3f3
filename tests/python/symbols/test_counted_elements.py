"""Arithmetic of ints that the graph computes (`mask.sum().item()`): ints where Python gives ints, floats where it gives floats."""
from __future__ import annotations

import pytest

import tenon

torch = pytest.importorskip("torch")

INPUTS = [(torch.arange(n) % 4, torch.arange(n) % 3) for n in (3, 5, 8, 12, 40)]


def accuracy(a, b):
    correct = (a == b).sum().item()
    return {"acc": correct / a.shape[0], "percent": 100 * correct / len(a), "errors": a.shape[0] - correct, "text": f"{correct / len(a):.2%}"}


def sums(a, b):
    first, second = a.sum().item(), b.max().item()
    return first + second, first * 3 - second, -first, first + True, second + 0.5, first**0.5, [first - 1], (first + 1) / (second + 1)


@pytest.mark.parametrize("fn", [accuracy, sums])
def test_no_break(check, fn):
    compiled = tenon.compile(fn)
    for args in INPUTS * 2:
        check.same(compiled(*args), fn(*args))
    stats = tenon.stats()
    assert (stats["graph_breaks"], stats["eager_fallbacks"]) == (0, 0) and stats["graphs"] <= 2, stats


@pytest.mark.parametrize("value", [2**31 - 1, 2**31 + 1, -(2**40), 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)])
def test_ints_have_no_limit(check, value):
    def fn(x):
        n = x.sum().item()
        return n + n, n * 4, n - 7, -n, n / 3, n * n, n + 0.5

    compiled = tenon.compile(fn)
    for x in (torch.tensor([5]), torch.tensor([value]), torch.tensor([value]), torch.tensor([value]), torch.tensor([-9])):
        check.same(compiled(x), fn(x))


def test_division_by_zero():
    compiled = tenon.compile(lambda a: (a + 1, 1 / (a > 2).sum().item()))
    assert compiled(torch.arange(6))[1] == 1 / 3
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            compiled(torch.zeros(6))


def test_extremes_and_powers_keep_their_types(check):
    def fn(a):
        n = a.sum().item()
        return max(n, 1.0), min(2, n), n**2, n // 2, n % 3, abs(n), round(n, 1), float(n), int(n)

    compiled = tenon.compile(fn)
    for n in (3, 4, 5):
        check.same(compiled(torch.arange(n)), fn(torch.arange(n)))


def test_tensors_meet_them(check):
    def fn(a):
        n = (a > 1).sum().item()
        return a * (n + 1), a / (n * 2 + 1), a.float() + (-n)

    compiled = tenon.compile(fn)
    for n in (3, 4, 5, 9):
        check.same(compiled(torch.arange(n)), fn(torch.arange(n)))
    assert tenon.stats()["graph_breaks"] == 0
