"""Tensors without dimensions where torch takes a number."""

import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional

X, Y, Z = torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4) + 1
FLOAT, DOUBLE, INTEGER, FLAG = torch.tensor(0.3), torch.tensor(0.3, dtype=torch.float64), torch.tensor(3), torch.tensor(True)

CALLS = {
    "addcdiv": lambda t: torch.addcdiv(X, Y, Z, value=t),
    "addcmul": lambda t: torch.addcmul(X, Y, Z, value=t),
    "addcdiv_": lambda t: X.clone().addcdiv_(Y, Z, value=-t),
    "alpha": lambda t: torch.add(X, Y, alpha=t),
    "alpha_in_place": lambda t: X.clone().add_(Y, alpha=t),
    "alpha_without_dimensions": lambda t: torch.add(FLOAT, FLOAT, alpha=t),
    "full": lambda t: torch.full((2,), t),
    "leaky_relu": lambda t: F.leaky_relu(X, t),
    "threshold": lambda t: F.threshold(X, t, 1.0),
    "addmm": lambda t: torch.addmm(X[:, :3], X, Y.T, alpha=t, beta=2),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("number", [FLOAT, DOUBLE], ids=["float", "double"])
def test_a_tensor_is_taken_as_the_number_that_it_holds(check, name, number):
    check(CALLS[name], (number,), (number * -2,))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("number", [INTEGER, FLAG], ids=["integer", "flag"])
def test_what_torch_refuses_is_refused(name, number):
    try:
        want = CALLS[name](number)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            tenon.compile(CALLS[name])(number)
    else:
        got = tenon.compile(CALLS[name])(number)
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want)


def test_a_float_scales_no_integers():
    compiled = tenon.compile(lambda t: torch.sub(torch.arange(3), torch.arange(3), alpha=t))
    with pytest.raises(RuntimeError, match="alpha"):
        compiled(FLOAT)


def test_sizes_are_never_taken_from_a_tensor():
    compiled = tenon.compile(lambda t: torch.arange(t))
    for size in (2.5, 4.0):
        torch.testing.assert_close(compiled(torch.tensor(size)), torch.arange(size))
