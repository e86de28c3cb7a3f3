"""What runs along a dimension: of lanes that are neighbours in memory and of lanes that are not, on several threads."""
import pytest

import tenon

torch = pytest.importorskip("torch")

SHAPES = {"columns": ((70, 1100), 0), "rows": ((1100, 70), 1), "middle": ((3, 40, 1030), 1), "few": ((5, 9), 0), "one lane": ((40000,), 0), "empty": ((0, 4), 0), "scalar": ((), 0)}
LAYOUTS = {"row-major": lambda x: x.clone(), "transposed": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0) if x.dim() else x, "expanded": lambda x: x[:1].expand(x.shape) if x.dim() else x}
DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "i64": torch.int64, "u8": torch.uint8, "bool": torch.bool}


def made(shape, dtype, layout, nan_from=10**9):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(20261125)) * 3
    if dtype.is_floating_point and x.numel() > 1:
        x.view(-1)[nan_from::997] = float("nan")
    return LAYOUTS[layout](x > 0 if dtype == torch.bool else x.abs().to(dtype) if dtype == torch.uint8 else x.to(dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_running_extremes(shape, dtype, layout):
    size, dim = SHAPES[shape]
    x = made(size, DTYPES[dtype], layout, nan_from=7)
    for op in (torch.cummax, torch.cummin):
        values, places = tenon.compile(op)(x, dim)
        expected, where = op(x, dim)
        assert torch.equal(torch.nan_to_num(values), torch.nan_to_num(expected)) and torch.equal(values.isnan(), expected.isnan())
        assert torch.equal(places, where)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_running_sums(shape, dtype, layout):
    size, dim = SHAPES[shape]
    x = made(size, DTYPES[dtype], layout)
    result = tenon.compile(torch.cumsum)(x, dim)
    if not x.is_floating_point():
        assert torch.equal(result, torch.cumsum(x, dim)) and torch.equal(tenon.compile(torch.cumprod)(x, dim), torch.cumprod(x, dim))
        return
    exact = torch.cumsum(x.double(), dim)
    assert result.dtype == x.dtype and torch.equal(result, exact.to(x.dtype))
    for op in (torch.cumprod, torch.logcumsumexp):
        exact = op(x.double(), dim)
        torch.testing.assert_close(tenon.compile(op)(x, dim), exact.to(x.dtype), rtol=2 * torch.finfo(x.dtype).eps, atol=0, equal_nan=True)


@pytest.mark.parametrize("op", ["sort", "topk", "kthvalue", "median"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_parts_on_several_threads(op, dim):
    x = torch.randn(33, 40, 50, generator=torch.Generator().manual_seed(4))
    arguments = {"sort": (dim,), "topk": (5, dim), "kthvalue": (5, dim), "median": (dim,)}[op]
    for result, expected in zip(tenon.compile(getattr(torch, op))(x, *arguments), getattr(torch, op)(x, *arguments)):
        assert torch.equal(result, expected)
    assert torch.equal(tenon.compile(lambda x: getattr(torch, op)(x, *arguments)[1])(x.movedim(0, 2)), getattr(torch, op)(x.movedim(0, 2), *arguments)[1])
