"""Comparison of programs that break with plain execution, exceptions and their tracebacks included."""
import copy
import traceback

import pytest

import tenon


class Raised:
    """An exception as a caller can see it."""

    def __init__(self, error):
        self.error = error
        self.type, self.args = type(error), error.args
        self.places = [(frame.name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)][1:]
        self.context = [type(e) for e in _chain(error)]

    def __eq__(self, other):
        return (self.type, self.args, self.places, self.context) == (other.type, other.args, other.places, other.context)

    def __repr__(self):
        return f"Raised({self.type.__name__}{self.args}, {self.places}, {[t.__name__ for t in self.context]})"


def _chain(error):
    while error is not None:
        yield error
        error = error.__context__


def outcome(fn, args):
    try:
        return fn(*args)
    except Exception as error:
        return Raised(error)


@pytest.fixture
def breaks(check):
    """Compares three calls a set of arguments with plain execution; what was written to the arguments must agree too. The second and third round
    must compile nothing. Gives the number of graphs."""

    def run(fn, *calls, fallbacks=0, settled=True, **options):
        compiled = tenon.compile(fn, **options)
        captured = None
        for _ in range(3):
            for args in calls:
                ours, plain = copy.deepcopy(args), copy.deepcopy(args)
                got, want = outcome(compiled, ours), outcome(fn, plain)
                check.same(got, want)
                check.same(ours, plain)
            if captured is not None and settled:
                assert (tenon.stats()["graphs"], tenon.stats()["recompiles"]) == captured
            captured = tenon.stats()["graphs"], tenon.stats()["recompiles"]
        if fallbacks is not None:
            assert tenon.stats()["eager_fallbacks"] == fallbacks, tenon.stats()
        assert tenon.stats()["graph_breaks"] > 0
        return tenon.stats()["graphs"]

    return run
