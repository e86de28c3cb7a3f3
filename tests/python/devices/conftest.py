"""Without a device there is nothing to collect here."""
import os

import pytest

DEVICE = os.environ.get("TENON_TEST_DEVICE", "")
collect_ignore_glob = [] if DEVICE else ["test_*.py"]


@pytest.fixture
def device():
    """The device under test, "cuda:0"."""
    return DEVICE


@pytest.fixture
def whole(check):
    """`check` of a function that is to be one graph, with nothing run eagerly."""
    import tenon

    def run(fn, *calls, breaks=0):
        check(fn, *calls)
        assert tenon.stats()["graph_breaks"] == breaks, tenon.stats()

    return run
