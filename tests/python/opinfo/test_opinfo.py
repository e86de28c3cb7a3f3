"""One sample of each entry of torch's operator database through tenon.compile. The whole walk is `python -m tests.opinfo`."""
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")  # torch.testing._internal wants it

sys.path.append(str(Path(__file__).parents[3]))
from tests.walks.sampled import verdicts_of  # noqa: E402


@pytest.mark.timeout(1500)
def test_no_sample_is_wrong(tmp_path):
    verdicts = verdicts_of("tests.opinfo", tmp_path / "results.jsonl", 20261121)
    assert len(verdicts) > 600 and verdicts.count("native") >= 350, {kind: verdicts.count(kind) for kind in set(verdicts)}


@pytest.mark.timeout(600)
def test_no_gradient_is_wrong(tmp_path):
    """The first sample of each entry. The whole walk, with kinks, ties, ends of ranges, and the second order, is `scripts/test gradients`."""
    verdicts = verdicts_of("tests.opinfo", tmp_path / "results.jsonl", 0, "--gradients", "--first", "--dtypes", "first order")
    assert len(verdicts) > 600 and verdicts.count("native") >= 250, {kind: verdicts.count(kind) for kind in set(verdicts)}


def test_the_judge_sees_what_is_wrong():
    import torch
    from tests.opinfo.judge import disagreement

    x = torch.tensor([1.0, -0.0, float("nan")])
    assert disagreement(x.clone(), x, None) is None
    assert "instead of" in disagreement(x.abs(), x, None)  # the sign of zero
    assert "strides" in disagreement(torch.ones(3, 2).t(), torch.ones(2, 3), None)
    assert "float64" in disagreement(x.double(), x, None)
    assert "error" in disagreement(x + 1e-5, x, x.double())
    assert disagreement((x, 1), [x, 1], None) and disagreement((x, 1), (x, 2), None)
