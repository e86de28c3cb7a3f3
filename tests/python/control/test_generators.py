"""Generators that a program leaves before their end."""
import pytest

import tenon

torch = pytest.importorskip("torch")


def until_index_error(values):
    at = 0
    try:
        while True:
            yield values[at]
            at += 1
    except (IndexError):
        return


def test_one_that_catches_other_exceptions_is_dropped_silently(check):
    check(lambda x: [(n, v * n) for n, v in zip([2, 3], until_index_error([x, x + 1, x + 2]))], (torch.ones(2),))
    assert tenon.stats()["graph_breaks"] == 0


def test_one_that_catches_its_end_is_not():
    seen = []

    def watched(x):
        try:
            yield x
        except GeneratorExit:
            seen.append("end")
            raise

    fn = tenon.compile(lambda x: next(watched(x)) + 1)
    for calls in (1, 2):
        assert torch.equal(fn(torch.ones(2)), torch.full((2,), 2.0))
        assert len(seen) == calls


def test_one_that_cleans_up_is_not():
    seen = []

    def watched(x):
        try:
            yield x
        except ValueError:
            seen.append("error")
        finally:
            seen.append("end")

    fn = tenon.compile(lambda x: next(watched(x)) + 1)
    for calls in (1, 2):
        assert torch.equal(fn(torch.ones(2)), torch.full((2,), 2.0))
        assert seen == ["end"] * calls
