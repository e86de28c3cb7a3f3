"""What the frames of a traceback hold goes when plain execution lets it go."""
from __future__ import annotations

import numpy as np
import pytest

import tenon


@pytest.mark.parametrize("named", (False, True))
def test_what_a_traceback_holds_is_let_go_in_its_turn(named):
    log = []

    def numbers(n):
        try:
            yield n
        finally:
            log.append("closed")

    def take(n):
        values = numbers(n)
        log.append(next(values))
        first, second = [n]

    def run(x):
        if named:
            try:
                sum(map(take, [3]))
            except ValueError as error:
                log.append(type(error).__name__)
        else:
            try:
                sum(map(take, [3]))
            except ValueError:
                log.append("caught")
        log.append("after")
        return x + 1

    compiled = tenon.compile(run)
    run(np.ones(2))
    want = log[:]
    for _ in range(2):
        log.clear()
        compiled(np.ones(2))
        assert log == want


def test_an_exception_without_its_traceback_is_kept():
    class Keep:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            self.error = error.with_traceback(None)
            return True

    def run(x):
        with Keep() as kept:
            print(end="")
            [].index(x)
        return x + 1, kept

    compiled = tenon.compile(run)
    for _ in range(3):
        y, kept = compiled(np.ones(2))
        assert y.tolist() == [2, 2] and type(kept.error) is ValueError and kept.error.__traceback__ is None
