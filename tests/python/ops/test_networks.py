"""What networks are made of, against eager: convolutions, pooling, interpolation, losses, attention."""
import pytest
from probe import Refused, compare

import tenon

torch = pytest.importorskip("torch")


def check(name, *args, tolerance=8, **kwargs):
    return compare(name, list(args), kwargs, tolerance)


def t(*shape, dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed + sum(shape))
    if dtype == torch.bool:
        return torch.rand(shape, generator=g) < 0.5
    if not dtype.is_floating_point:
        return torch.randint(-9, 10, shape, generator=g).to(dtype)
    return torch.randn(shape, generator=g).to(dtype)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolutions(n):
    size = (9, 8, 7)[:n]
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        check(f"torch.conv{n}d", t(2, 4, *size, dtype=dtype), t(6, 2, *[3] * n, dtype=dtype), t(6, dtype=dtype), 2, 1, 1, 2)
    check(f"torch.conv{n}d", t(4, *size), t(6, 4, *[2] * n), padding="same"), check(f"torch.conv{n}d", t(1, 4, *size), t(6, 4, *[3] * n), padding="same", dilation=2)
    check(f"torch.conv_transpose{n}d", t(2, 4, *[3] * n), t(4, 2, *[3] * n), t(4), 2, 1, 1, 2), check(f"torch.conv_transpose{n}d", t(4, *[3] * n), t(4, 2, *[2] * n), dilation=2)
    check("torch.convolution", t(1, 4, *size), t(6, 4, *[3] * n), None, [2] * n, [1] * n, [1] * n, False, [0] * n, 1)


def test_a_kernel_larger_than_its_input_is_an_error():
    with pytest.raises(Refused, match="smaller than the kernel|no elements"):
        check("torch.conv2d", t(1, 2, 3, 3), t(2, 2, 5, 5))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pooling(n):
    x = t(2, 3, *(11, 8, 9)[:n])
    check(f"torch.max_pool{n}d", x, 3, 2, 1), check(f"torch.max_pool{n}d", x, 2, ceil_mode=True), check(f"torch.max_pool{n}d", x, 2, dilation=3, stride=1)
    check(f"torch.nn.functional.max_pool{n}d_with_indices", x, 3, 2, 1)
    check(f"torch.nn.functional.avg_pool{n}d", x, 3, 2, 1), check(f"torch.nn.functional.avg_pool{n}d", x, 3, 2, 1, True, False)
    check(f"torch.nn.functional.adaptive_avg_pool{n}d", x, 3), check(f"torch.nn.functional.adaptive_avg_pool{n}d", x, 1)
    check(f"torch.nn.functional.adaptive_max_pool{n}d_with_indices", x, 4)


def test_maxima_pass_nan_on_and_take_its_last_place():
    x = t(1, 1, 4, 6)
    x[0, 0, 1, 1] = x[0, 0, 0, 1] = float("nan")
    check("torch.nn.functional.max_pool2d_with_indices", x, 2), check("torch.nn.functional.max_pool2d_with_indices", torch.full((1, 1, 4, 4), -float("inf")), 2)


def test_scaled_dot_product_attention():
    name = "torch.nn.functional.scaled_dot_product_attention"
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        check(name, t(2, 3, 5, 8, dtype=dtype), t(2, 3, 6, 8, dtype=dtype), t(2, 3, 6, 4, dtype=dtype))
    q, k = t(2, 4, 5, 8), t(2, 2, 5, 8, seed=1)
    check(name, q, k, k, enable_gqa=True), check(name, q, q, q, is_causal=True), check(name, q, q, q, scale=0.1), check(name, q, q, q, attn_mask=t(5, 5))
    mask = t(5, 5, dtype=torch.bool)
    mask[2] = False  # a row that sees nothing gives zeros
    check(name, q, q, q, attn_mask=mask)


def test_einsum():
    for equation, shapes in [("ij,jk->ik", [(3, 4), (4, 5)]), ("bij,bjk", [(2, 3, 4), (2, 4, 5)]), ("...ij,...kj->...ik", [(2, 3, 4), (5, 4)]), ("ii->i", [(4, 4)]), ("ii", [(4, 4)]),
                             ("ij,ij->", [(3, 4), (3, 4)]), ("i,j,k->kji", [(2,), (3,), (4,)]), ("bhwij,bhij->bhwi", [(2, 3, 4, 2, 5), (2, 3, 2, 5)]), ("ij->ji", [(2, 3)])]:
        check("torch.einsum", equation, *[t(*s, seed=i) for i, s in enumerate(shapes)])
    check("torch.tensordot", t(3, 4, 5), t(4, 5, 6)), check("torch.tensordot", t(3, 4, 5), t(5, 4), dims=([2, 1], [0, 1])), check("torch.kron", t(2, 3), t(4))
    with pytest.raises(Refused, match="einsum"):
        check("torch.einsum", "ij,jk->il", t(3, 4), t(4, 5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool])
def test_long_lanes_keep_the_order_of_equal_elements(dtype):
    x = t(400, 3, dtype=dtype) if dtype == torch.bool else (t(400, 3) * 90).round().to(dtype)
    if dtype.is_floating_point:
        x[::7], x[::11], x[::13], x[::17] = float("nan"), -float("inf"), -0.0, 0.0
    elif dtype == torch.int64:
        x[::7], x[::11] = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    for descending in (False, True):
        check("torch.sort", x, dim=0, descending=descending, stable=True), check("torch.sort", x.T, descending=descending, stable=True)


def test_order_of_equal_elements_and_nan():
    x = torch.tensor([[2.0, float("nan"), 1, 2, -0.0, 0.0, float("nan"), -float("inf")]])
    for descending in (False, True):
        check("torch.sort", x, descending=descending), check("torch.argsort", x.to(torch.float16), dim=1, descending=descending, stable=True)
    many = t(3, 200, dtype=torch.int64)
    for k in (1, 3, 150):
        check("torch.topk", many, k), check("torch.topk", many, k, largest=False), check("torch.kthvalue", many, k)
    check("torch.median", many, 1), check("torch.median", x, 1), check("torch.nanmedian", x, 1), check("torch.cummax", x, 1), check("torch.cummin", many, -1)


def test_scatters_with_every_reduction():
    x, index, src = t(4, 5), torch.tensor([[0, 2, 1, 0, 3], [3, 3, 1, 0, 0]]), t(2, 5, seed=1)
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            check("torch.scatter_reduce", x, 0, index, src, reduce, include_self=include)
            check("torch.scatter_reduce", x.long(), 0, index, src.mul(3).long(), reduce, include_self=include)
        if reduce != "sum":
            check("torch.index_reduce", x, 0, torch.tensor([2, 0]), src, reduce)
    check("torch.index_fill", x, 1, torch.tensor([0, -1]), 7), check("torch.masked_scatter", x, x > 0, t(30)), check("torch.put", x, torch.tensor([3, -1]), torch.tensor([5.0, 6.0]), True)


def test_quantiles():
    x = t(5, 7)
    x[1, 2] = float("nan")
    for mode in ("linear", "lower", "higher", "midpoint", "nearest"):
        check("torch.quantile", x, torch.tensor([0.0, 0.3, 1.0]), 1, interpolation=mode), check("torch.nanquantile", x, 0.6, 0, True, interpolation=mode)
        check("torch.nanquantile", x, torch.tensor([0.0, 0.3, 1.0]), 1, interpolation=mode), check("torch.nanquantile", x, torch.tensor(0.7), interpolation=mode)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("size", [0, 1, 1000, 100003])
def test_products_of_vectors(size, dtype):
    x, y = ((torch.randn(size, generator=torch.Generator().manual_seed(k)) * 4).to(dtype) for k in (1, 2))
    exact = (x.double() * y.double()).sum()
    for result in (tenon.compile(torch.dot)(x, y), tenon.compile(lambda x, y: x @ y)(x, y), tenon.compile(lambda x, y: (x[None] @ y[:, None] + 0)[0, 0])(x, y)):
        assert result.dtype == dtype
        torch.testing.assert_close(result, exact.to(dtype), rtol=0, atol=0 if dtype == torch.int64 else float(torch.finfo(dtype).eps * (x.double() * y.double()).abs().sum()))


def test_products_of_rows_with_rows():
    x, y = t(7, 5, 1003), t(7, 5, 1003, seed=1)
    exact = (x.double() * y.double()).sum(-1)
    for fn in (lambda x, y: torch.einsum("abi,abi->ab", x, y), lambda x, y: (x[..., None, :] @ y[..., None])[..., 0, 0], torch.linalg.vecdot):
        torch.testing.assert_close(tenon.compile(fn)(x, y).double(), exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 2, 4, 5, 13])
def test_few_rows_with_weights_in_half_precision(rows, dtype):
    x, weight, bias = t(rows, 301).to(dtype), t(70, 301, seed=1).to(dtype), t(70, seed=2).to(dtype)
    exact = x.double() @ weight.double().t() + bias.double()
    for fn in (torch.nn.functional.linear, lambda x, w, b: x @ w.t().contiguous() + b, lambda x, w, b: torch.addmm(b, x, w.t())):
        torch.testing.assert_close(tenon.compile(fn)(x, weight, bias).double(), exact, rtol=2 * torch.finfo(dtype).eps, atol=0.05)
