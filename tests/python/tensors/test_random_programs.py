"""A short run of random programs of tensors; `python -m tests.fuzz_tensors` runs for as long as one likes."""
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

sys.path.append(str(Path(__file__).parents[3]))
from tests.fuzz_tensors.compare import difference, identities  # noqa: E402
from tests.walks.sampled import run_module  # noqa: E402


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("sizes", "count"), [("small", 100), ("large", 20)])
def test_no_program_differs(sizes, count):
    run = run_module("tests.fuzz_tensors", "--seed", "1", "--count", str(count), "--sizes", sizes)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert run.stdout.splitlines()[-1] == f"{count} programs, 0 differ"


def test_the_comparison_sees_what_differs():
    x = torch.tensor([[1.0, float("nan")], [3.0, 4.0]])
    assert difference(x.clone(), x, 1e-6) is None
    assert "values" in difference(x + 1e-3, x, 1e-6)
    assert "strides" in difference(x.t().contiguous().t(), x, 1e-6)
    assert "float64" in difference(x.double(), x, 1e-6)
    assert "elements" in difference(torch.tensor([1, 2]), torch.tensor([1, 3]), 0.0)
    assert identities([x, x]) != identities([x, x.clone()])
