"""Methods of objects of C types with odd arguments: a slice of tests.fuzz_objects."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[3]))
from tests.fuzz_objects import compare  # noqa: E402


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_call_differs(seed):
    pytest.importorskip("torch")
    differences = compare.run(seed, 400)
    assert not differences, "\n".join(differences)
