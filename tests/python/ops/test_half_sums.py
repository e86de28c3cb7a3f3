"""Sums and products of half floats: rounded once, as eager rounds them, with float64 as the judge."""
import pytest

import tenon

torch = pytest.importorskip("torch")

PLACES = torch.arange(33) % 5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    "fn",
    [
        lambda a: torch.nn.functional.glu(a),
        lambda a: torch.zeros(5, a.shape[1], dtype=a.dtype).index_add(0, PLACES, a),
        lambda a: torch.zeros(5, a.shape[1], dtype=a.dtype).scatter_add(0, PLACES[:, None].expand_as(a), a),
        lambda a: torch.zeros(5, a.shape[1], dtype=a.dtype).scatter_reduce(0, PLACES[:, None].expand_as(a), a, "sum"),
        lambda a: torch.zeros(5, a.shape[1], dtype=a.dtype).scatter_reduce(0, PLACES[:, None].expand_as(a), a, "mean"),
    ],
    ids=["glu", "index_add", "scatter_add", "scatter_sum", "scatter_mean"],
)
def test_half_floats_are_rounded_once(fn, dtype):
    def error(run):
        return sum((run(a).double() - fn(a.double())).square().mean() for a in (torch.randn(33, 64, generator=torch.Generator().manual_seed(seed)).to(dtype) for seed in range(20))).sqrt()

    assert error(tenon.compile(fn)) <= 1.1 * error(fn)
