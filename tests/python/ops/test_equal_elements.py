"""Statistics of equal elements: none deviates, whatever a mean would be rounded to. Programs ask whether a deviation is 0, and divide by it."""
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional

DEVIATIONS = {
    "var": lambda x: x.var((2, 3)),
    "std of all": lambda x: x.std(),
    "biased": lambda x: x.std(0, correction=0),
    "with the mean": lambda x: torch.var_mean(x, (1, 2, 3))[0],
}
NORMALISED = {
    "groups": lambda x: F.group_norm(x, 2),
    "samples": lambda x: F.instance_norm(x),
}
VALUES = (0.1, 1 / 3, 3.7, 1000.1)


@pytest.mark.parametrize("shape", [(2, 4, 3, 3), (3, 8, 5, 7), (16, 8, 32, 32)], ids=str)
@pytest.mark.parametrize("fn, dtype", [(fn, torch.float32) for fn in (DEVIATIONS | NORMALISED).values()] + [(fn, torch.float64) for fn in DEVIATIONS.values()])
def test_nothing_deviates(fn, dtype, shape):
    compiled = tenon.compile(fn)
    for value in VALUES:
        assert not compiled(torch.full(shape, value, dtype=dtype)).any()


@pytest.mark.parametrize("value", VALUES)
def test_the_mean_beside_a_variance(value):
    x = torch.full((16, 8, 32), value)
    assert torch.equal(tenon.compile(lambda x: torch.var_mean(x, (1, 2))[1])(x), torch.var_mean(x, (1, 2))[1])


def test_a_deviation_of_0_has_no_gradient():
    def gradient(x):
        return torch.autograd.grad(x.std(-1).sum(), x)[0]

    x = torch.full((4, 10), 0.1, requires_grad=True)
    assert not gradient(x).any() and not tenon.compile(gradient)(x).any()


@pytest.mark.parametrize("fn", [lambda x: x.std(-1), lambda x: F.group_norm(x, 6)])
def test_nearly_equal_elements(fn):
    compiled = tenon.compile(fn)
    for seed in range(20):
        x = 3.7 + torch.randn(2, 6, 2, generator=torch.Generator().manual_seed(seed)) * 1e-6
        torch.testing.assert_close(compiled(x).double(), fn(x.double()), rtol=1e-6, atol=1e-6)
