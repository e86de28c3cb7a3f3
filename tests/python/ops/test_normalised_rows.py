"""Rows whose elements have nearly all in common: the mean must not round what makes them different."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.mark.parametrize("value", [3.3, 100.1, 1e4])
@pytest.mark.parametrize("shape", [(4, 768), (2, 8, 512)])
def test_constant_rows_are_normalised_to_zero(shape, value):
    x = torch.full(shape, value)
    normalise = tenon.compile(lambda x: F.layer_norm(x, x.shape[1:]))
    assert torch.equal(normalise(x), torch.zeros(shape))


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e4, -1e5])
def test_rows_far_from_zero_are_as_near_to_the_truth_as_eager(mean):
    rng = np.random.default_rng(3)
    x = torch.from_numpy((rng.standard_normal((16, 768)) + mean).astype(np.float32))
    truth = F.layer_norm(x.double(), (768,))
    ours = (tenon.compile(lambda x: F.layer_norm(x, (768,)))(x).double() - truth).abs().max()
    assert ours <= 2 * (F.layer_norm(x, (768,)).double() - truth).abs().max()


def test_empty_rows_stay_empty():
    x = torch.empty(3, 0)
    assert tenon.compile(lambda x: F.layer_norm(x, (0,)))(x).shape == (3, 0)
