"""A short run of random modules; `python -m tests.fuzz_modules` runs for as long as one likes."""
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

sys.path.append(str(Path(__file__).parents[3]))
from tests.fuzz_modules.compare import difference, leaves  # noqa: E402
from tests.walks.sampled import run_module  # noqa: E402


@pytest.mark.timeout(300)
def test_no_module_differs():
    run = run_module("tests.fuzz_modules", "--seed", "1", "--count", "50")
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert run.stdout.splitlines()[-1] == "50 modules, 0 differ"


def test_the_comparison_sees_what_differs():
    x = torch.tensor([[1.0, float("nan")], [3.0, 4.0]])
    assert difference(x.clone(), x, x, 1e-6) is None
    assert "error" in difference(x + 1e-3, x, x, 1e-6)
    assert difference(x + 1e-3, x, x + 5e-4, 1e-6) is None  # no worse than eager
    assert "strides" in difference(x.t().contiguous().t(), x, x, 1e-6)
    assert "requires_grad" in difference(x.clone().requires_grad_(), x, x, 1e-6)
    assert "instead of" in difference(1, 1.0, 1.0, 0.0)
    assert [path for path, _ in leaves({"a": [x, (1,)]}, "")] == ["", "['a']", "['a'][0]", "['a'][1]", "['a'][1][0]"]
