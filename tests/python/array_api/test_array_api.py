"""One call of each NumPy function of the array API standard and dtype through tenon.compile. The whole walk is `python -m tests.array_api`."""
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[3]))
from tests.array_api.judge import disagreement, with_zeros_like  # noqa: E402
from tests.walks.sampled import verdicts_of  # noqa: E402


@pytest.mark.timeout(600)
def test_no_call_is_wrong(tmp_path):
    verdicts = verdicts_of("tests.array_api", tmp_path / "results.jsonl", 20261122, "--dtypes", "float64,int32,uint8,bool")
    assert len(verdicts) > 200 and verdicts.count("native") >= 120, {kind: verdicts.count(kind) for kind in set(verdicts)}


def test_the_judge_sees_what_is_wrong():
    x = np.array([1.0, -0.0, np.nan])
    assert disagreement(x.copy(), x) is None
    assert "instead of" in disagreement(abs(x), x)  # the sign of zero
    assert "float32" in disagreement(x.astype("float32"), x)
    assert "error" in disagreement(x + 1e-9, x, x.astype(np.longdouble))
    assert "type" in disagreement(np.float64(1), np.array(1.0)) and "type" in disagreement((x,), [x])
    assert "instead of" in disagreement(np.array([1, 2]), np.array([1, 3]))


def test_zeros_that_were_sorted_are_compared_without_their_signs():
    x = np.array([[0.0, 2.0, -1.0, -0.0], [-0.0, 1.0, -0.0, 0.0]])
    ours, numpys = np.sort(x, stable=True), np.array([[-1.0, 0.0, 0.0, 2.0], [0.0, 0.0, 0.0, 1.0]])
    assert disagreement(with_zeros_like(ours, numpys, x, -1), numpys) is None
    assert "instead of" in disagreement(with_zeros_like(-abs(ours), numpys, x, -1), numpys)  # more negative zeros than were sorted
    assert "instead of" in disagreement(with_zeros_like(ours, numpys, x, 0), numpys)  # in other lanes
    assert "error" in disagreement(with_zeros_like(x, numpys, x, -1), numpys)
