"""Two products with a reduction between them share blocks of rows, unless somebody else reads what lies between."""
from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import tenon  # noqa: E402


def normed(y, seen):
    squares = y.pow(2)
    scale = torch.rsqrt(squares.mean(-1, keepdim=True) + 1e-5)
    return y * scale, {"product": y, "squares": squares, "scale": scale, "nothing": None, "shifted": y + 1, "mean": squares.mean(-1)}[seen]


@pytest.mark.parametrize("width", (32, 64, 256))
@pytest.mark.parametrize("seen", ("nothing", "product", "squares", "scale", "shifted", "mean"))
def test_what_lies_between_two_products_is_given_out(seen, width):
    torch.manual_seed(0)
    x, first, second = torch.randn(2, 10, 32), torch.randn(width, 32) / 6, torch.randn(width, width) / width**0.5

    def run(x):
        rows, between = normed(F.linear(x, first), seen)
        result = F.linear(rows, second)
        return (result,) if between is None else (result, between)

    compiled = tenon.compile(run)
    with torch.no_grad():
        for _ in range(2):
            for got, want in zip(compiled(x), run(x), strict=True):
                torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_what_lies_between_two_products_is_used_by_a_third():
    torch.manual_seed(0)
    x, first, second, third = torch.randn(20, 32), torch.randn(64, 32) / 6, torch.randn(64, 64) / 8, torch.randn(8, 64) / 8

    def run(x):
        y = F.linear(x, first)
        squares = y.pow(2)
        rows = y * torch.rsqrt(squares.mean(-1, keepdim=True) + 1e-5)
        return F.linear(rows, second), F.linear(squares, third)

    with torch.no_grad():
        for got, want in zip(tenon.compile(run)(x), run(x), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
