"""Sorted elements without their places, and places without the elements: what nobody reads is not made."""
import numpy as np
import pytest

import tenon

KINDS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "few values": lambda rng, n: rng.integers(-3, 4, n) * 0.5,
    "many scales": lambda rng, n: np.exp(rng.standard_normal(n) * 40),
    "low digits alone": lambda rng, n: 1 + rng.integers(0, 2**20, n) * 2.0**-52,
    "whole range": lambda rng, n: rng.integers(-(2**31), 2**31, n),
    "rows": lambda rng, n: rng.standard_normal((3, n)),
    "reversed": lambda rng, n: rng.standard_normal(n)[::-1],
    "columns": lambda rng, n: rng.standard_normal((n, 3)).T,
}


def bits(x):
    return np.ascontiguousarray(x).view(f"u{x.itemsize}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("kind", KINDS)
def test_elements_without_places(kind, dtype):
    rng = np.random.default_rng(20261123)
    compiled = tenon.compile(lambda x: np.sort(x, stable=True), dynamic=True)
    for n in (1, 2, 47, 48, 600, 70000):
        made = KINDS[kind](rng, n)
        with np.errstate(all="ignore"):
            x = made.astype(dtype) if made.strides[-1] > 0 else made[::-1].astype(dtype)[::-1]
        if x.dtype.kind == "f":
            x[..., rng.integers(0, n, n // 5)] = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf], n // 5)
        assert np.array_equal(bits(compiled(x)), bits(np.sort(x, stable=True)))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("descending", [False, True])
def test_zeros_and_nans_keep_their_order(descending):
    torch = pytest.importorskip("torch")
    x = torch.tensor([0.0, -0.0, 3.0, float("nan"), -0.0, -1.0, 0.0, -float("nan")] * 20)
    fn = tenon.compile(lambda x: torch.sort(x, stable=True, descending=descending)[0])
    assert np.array_equal(bits(fn(x).numpy()), bits(torch.sort(x, stable=True, descending=descending)[0].numpy()))


@pytest.mark.parametrize("part", [0, 1, slice(None)])
def test_one_result_of_two(check, part):
    torch = pytest.importorskip("torch")

    def fn(x):
        pairs = torch.sort(x, dim=0, stable=True), torch.topk(x, 3), torch.kthvalue(x, 2), torch.median(x, 1), torch.cummax(x, 1)
        return [tuple(pair)[part] for pair in pairs]

    generator = torch.Generator().manual_seed(3)
    check(fn, (torch.randn(50, 60, generator=generator),))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("descending", [False, True])
def test_many_short_lanes(dtype, descending):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(20261125)
    compiled = tenon.compile(lambda x, dim: torch.sort(x, dim=dim, stable=True, descending=descending)[0], dynamic=True)
    for rows, columns in ((1, 9), (3, 100), (7, 2), (16, 33), (37, 64), (41, 1023), (5, 1025)):
        x = torch.from_numpy((rng.standard_normal((rows, columns)) * 1e3).astype(dtype))
        if x.dtype.is_floating_point:
            x[rows // 2, ::2] = -0.0  # lanes that show in which order equal elements stand
            x[rows // 3, 1] = float("nan")
        for dim in (0, 1):
            assert np.array_equal(bits(compiled(x, dim).numpy()), bits(torch.sort(x, dim=dim, stable=True, descending=descending)[0].numpy()))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
def test_bytes(dtype):
    rng = np.random.default_rng(20261125)
    compiled = tenon.compile(lambda x: (np.sort(x, 0), np.sort(x, 1), np.sort(x, None), np.unique(x)))
    for shape in ((1, 1), (3, 700), (200, 5)):
        x = rng.integers(-200, 200, shape).astype(dtype)
        for x in (x, x[:, ::-1]):
            for ours, plain in zip(compiled(x), (np.sort(x, 0), np.sort(x, 1), np.sort(x, None), np.unique(x))):
                assert ours.dtype == plain.dtype and np.array_equal(ours, plain)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8"])
@pytest.mark.parametrize("length", [1, 2, 7, 512, 5000, 40001])
def test_medians(dtype, length):
    """Of few elements and many, with equal ones and both zeros; of equal ones torch says which."""
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, dtype)
    torch.manual_seed(length)
    spread = torch.randn(3, length) * (10 if length % 2 else 1000)
    x = spread.clamp(min=0).to(dtype) if dtype == torch.uint8 else spread.to(dtype)
    x[:, ::3] = 0
    if dtype.is_floating_point:
        x[:, ::6] = -0.0
        x[1, length // 2] = torch.nan
    for fn in (torch.median, torch.nanmedian):
        torch.testing.assert_close(tenon.compile(fn)(x), fn(x), equal_nan=True, rtol=0, atol=0)
        got, want = (f(x, dim=1) for f in (tenon.compile(fn), fn))
        torch.testing.assert_close(got.values, want.values, equal_nan=True, rtol=0, atol=0)
        torch.testing.assert_close(x.gather(1, got.indices[:, None])[:, 0], want.values, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("size", [0, 1, 2, 5, 31, 1000])
def test_searches(right, size):
    """Also where the sequence is not sorted, or has nan: the place depends on the steps then."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(size)
    sequences = {"sorted": torch.rand(size).sort().values, "nan last": torch.cat([torch.rand(size).sort().values, torch.full((2,), torch.nan)]),
                 "any order": torch.rand(size), "integers": torch.randint(0, 50, (size,)).sort().values}  # fmt: skip
    for sequence in sequences.values():
        values = (torch.rand(7, 11) * 1.2 - 0.1) if sequence.is_floating_point() else torch.randint(-2, 52, (7, 11))
        if sequence.is_floating_point():
            values[0, :3] = torch.nan
        fn = lambda s, v: (torch.searchsorted(s, v, right=right), torch.bucketize(v, s, right=right), torch.searchsorted(s.expand(7, -1).contiguous(), v.mT.contiguous().mT, right=right))  # noqa: E731
        for got, want in zip(tenon.compile(fn)(sequence, values), fn(sequence, values)):
            assert torch.equal(got, want)
