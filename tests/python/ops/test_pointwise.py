"""Every pointwise alias of the catalogue against the library that it names, over dtypes and pairs of dtypes."""
import itertools
import math
import warnings

import numpy as np
import pytest
from probe import LIBRARY, Refused, catalogue, compare

import tenon

torch = pytest.importorskip("torch")

OPS = catalogue() if LIBRARY else []
TORCH_DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
NUMPY_DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
POSITIVE = {"sqrt", "rsqrt", "log", "log2", "log10", "log1p", "acosh", "arccosh", "lgamma", "gammaln", "logit", "asin", "arcsin", "acos", "arccos", "atanh", "arctanh", "pow", "power", "__pow__", "__rpow__"}


def pointwise_aliases(flavour, operands):
    kind = {1: "(Tensor self) -> Tensor", 2: "(Tensor self, Tensor other) -> Tensor"}[operands]
    of_real = [op for op in OPS if op["body"] and op["schema"] == kind and op["name"] != "imag"]  # complex numbers alone have that part: tensors/test_complex_arithmetic.py
    return [a for op in of_real for a in op["aliases"] if a.startswith(flavour) and "dropout" not in a]


def values(dtype, seed, name, shape=(4, 5)):
    rng = np.random.default_rng(seed)
    word = name.split(".")[-1]
    low = 0 if dtype == "uint8" else -5
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if "int" in dtype:
        if word in POSITIVE or "shift" in word:
            return rng.integers(1, 4, shape).astype(dtype)
        x = rng.integers(low, 6, shape).astype(dtype)
        return np.where(x == 0, 3, x).astype(dtype) if seed else x
    if word in POSITIVE:
        x = rng.uniform(0.05, 0.95, shape)
        return (x + 1 if "acosh" in word or "arccosh" in word else x).astype(dtype)
    return (rng.standard_normal(shape) * 2).astype(dtype)


def torch_values(dtype, seed, name, shape=(4, 5)):
    word = str(dtype).removeprefix("torch.")
    return torch.from_numpy(np.asarray(values("float32" if word == "bfloat16" else word, seed, name, shape))).to(dtype)


def both(name, args, kwargs=None, tolerance=2):
    """Compares; where eager refuses, the catalogue must refuse too (or leave it to eager)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return compare(name, args, kwargs or {}, tolerance)
        except Refused as refused:
            assert refused.code in ("unsupported", "invalid_argument"), refused
            return None
        except (TypeError, RuntimeError, ValueError, OverflowError, ZeroDivisionError, AttributeError) as e:
            # eager refused: the message is eager's. What the catalogue gave is never used then, because capture runs eager's checks.
            pytest.skip(f"eager refuses: {str(e)[:60]}")


@pytest.mark.parametrize("name", pointwise_aliases("torch", 1))
def test_torch_unary(name):
    done = 0
    for dtype in TORCH_DTYPES:
        x = torch_values(dtype, 0, name)
        try:
            done += both(name, [x]) is not None
        except pytest.skip.Exception:
            continue
    assert done, "no dtype was compared"


@pytest.mark.parametrize("name", pointwise_aliases("numpy", 1))
def test_numpy_unary(name):
    done = 0
    for dtype in NUMPY_DTYPES:
        try:
            done += both(name, [values(dtype, 0, name)]) is not None
        except pytest.skip.Exception:
            continue
    assert done, "no dtype was compared"


@pytest.mark.parametrize("name", pointwise_aliases("torch", 2))
def test_torch_binary_of_every_pair_of_dtypes(name):
    done = 0
    for a, b in itertools.product(TORCH_DTYPES, repeat=2):
        try:
            done += both(name, [torch_values(a, 0, name), torch_values(b, 1, name, (5,))]) is not None
        except pytest.skip.Exception:
            continue
    assert done, "no pair was compared"


@pytest.mark.parametrize("name", pointwise_aliases("numpy", 2))
def test_numpy_binary_of_every_pair_of_dtypes(name):
    done = 0
    for a, b in itertools.product(NUMPY_DTYPES, repeat=2):
        try:
            done += both(name, [values(a, 0, name), values(b, 1, name, (5,))]) is not None
        except pytest.skip.Exception:
            continue
    assert done or name.rpartition(".")[2] in ("pow", "power", "__pow__", "__rpow__"), "no pair was compared"


@pytest.mark.parametrize("name", ["torch.add", "torch.mul", "torch.div", "torch.sub", "torch.maximum", "torch.eq", "torch.lt", "torch.floor_divide", "torch.remainder", "torch.pow", "torch.atan2"])
def test_torch_numbers_and_0d_tensors_are_weak(name):
    done = 0
    for dtype in TORCH_DTYPES:
        x = torch_values(dtype, 0, name)
        others = [2, 2.5, True, torch.tensor(2), torch.tensor(2.5), torch.tensor(2.5, dtype=torch.float64), torch.tensor(True), torch.tensor(3, dtype=torch.int8)]
        if name in ("torch.maximum", "torch.atan2"):
            others = others[3:]
        for other in others:
            for args in ([x, other], [torch_values(dtype, 0, name, ()), other]):
                try:
                    done += both(name, args) is not None
                except pytest.skip.Exception:
                    continue
    assert done > 10


@pytest.mark.parametrize("name", ["numpy.add", "numpy.multiply", "numpy.true_divide", "numpy.subtract", "numpy.maximum", "numpy.equal", "numpy.less", "numpy.floor_divide", "numpy.remainder", "numpy.power", "numpy.arctan2", "numpy.ndarray.__rsub__", "numpy.ndarray.__rtruediv__"])
def test_numpy_numbers_are_weak_and_scalars_are_strong(name):
    done = 0
    for dtype in NUMPY_DTYPES:
        x = values(dtype, 0, name)
        for other in (2, 2.5, True, np.float32(2.5), np.float64(2.5), np.int8(3), np.int64(3), np.asarray(2.5), np.bool_(True)):
            try:
                done += both(name, [x, other]) is not None
            except pytest.skip.Exception:
                continue
    assert done > 10


@pytest.mark.parametrize("name", pointwise_aliases("torch", 1) + pointwise_aliases("torch", 2))
def test_bodies_as_nodes_give_the_same(name):
    count = 1 if name in pointwise_aliases("torch", 1) else 2
    for dtype in (torch.float32, torch.int32):
        args = [torch_values(dtype, i, name) for i in range(count)]
        try:
            compare(name, args, {}, 4, expand=True)
        except Refused as refused:
            assert refused.code in ("unsupported", "invalid_argument"), refused
        except (TypeError, RuntimeError):
            continue


def test_special_values():
    special = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -1.0, 0.5, 1e30, -1e30, 1e-30, 80.0, -80.0])
    skipped = {"lgamma", "gammaln"}  # poles have their own signs
    for dtype in (torch.float32, torch.float64):
        for name in pointwise_aliases("torch", 1):
            if name.rpartition(".")[2] in skipped:
                continue
            try:
                compare(name, [special.to(dtype)], {}, 4)
            except Refused as refused:
                assert refused.code in ("unsupported", "invalid_argument"), (name, refused)
            except (TypeError, RuntimeError):
                continue
            except AssertionError as e:
                raise AssertionError(f"{name}: {e}") from None


def test_special_values_of_pairs():
    special = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -2.5, 7.0]
    a, b = (torch.tensor([p[i] for p in itertools.product(special, repeat=2)]) for i in range(2))
    for name in ("torch.add", "torch.mul", "torch.div", "torch.maximum", "torch.minimum", "torch.fmax", "torch.fmin", "torch.atan2", "torch.hypot", "torch.copysign", "torch.remainder", "torch.fmod",
                 "torch.floor_divide", "torch.pow", "torch.logaddexp", "torch.eq", "torch.lt", "torch.ge", "torch.xlogy"):
        try:
            compare(name, [a, b], {}, 2)
        except AssertionError as e:
            raise AssertionError(f"{name}: {e}") from None


def test_integers_wrap():
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        info = torch.iinfo(dtype)
        x = torch.tensor([info.min, info.max, info.max - 1, 1, 0], dtype=dtype)
        for name in ("torch.add", "torch.sub", "torch.mul"):
            compare(name, [x, x.flip(0)], {})
        for name in ("torch.neg", "torch.abs", "torch.square", "torch.bitwise_not"):
            compare(name, [x], {})


def test_log_gamma_next_to_its_zeros():
    generator = torch.Generator().manual_seed(8)
    near = torch.randn(4000, generator=generator) * 1e-5
    x = torch.cat([torch.rand(4000, generator=generator) * 20 - 10, 1 + near, 2 + near, -2.4570247 + near, 10 ** (torch.rand(4000, generator=generator) * 70 - 35)])
    exact = torch.tensor([math.lgamma(v) for v in x.tolist()], dtype=torch.float64)
    error = (tenon.compile(torch.lgamma)(x).double() - exact).abs()
    assert torch.all(error <= 2 * torch.finfo(torch.float32).eps * exact.abs())
    special = torch.tensor([0.0, -0.0, 1, 2, -1, -7, math.inf, -math.inf, math.nan, 3e38, -3e38, 1e-45])
    assert torch.allclose(tenon.compile(torch.lgamma)(special), torch.lgamma(special), equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fn", [np.fmod, np.remainder, np.floor_divide])
def test_remainders_are_exact(fn, dtype):
    rng = np.random.default_rng(9)
    special = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 1.17e-38, 3.4e38, 0.1, 7.5, 16777217]).astype(dtype)
    below = np.nextafter((rng.integers(1, 2**20, 1000) * np.float32(0.3)).astype(dtype), np.zeros(1, dtype))  # quotients that round up to a whole number
    pairs = [
        [p.ravel().copy() for p in np.meshgrid(special, special)],
        [rng.integers(-1000, 1000, 1000) * 0.1, np.full(1000, 0.1)],
        [np.exp(rng.standard_normal(1000) * 10), -np.exp(rng.standard_normal(1000) * 10)],
        [rng.integers(0, 2**24, 1000), rng.integers(1, 7, 1000)],
        [below, np.full(1000, 0.3)],
        [below[:5], np.inf],
        [rng.random(1000) * np.finfo(dtype).tiny * 2**20, rng.integers(1, 1000, 1000) * np.finfo(dtype).smallest_subnormal],
    ]
    compiled = tenon.compile(lambda a, b: fn(a, b))
    for a, b in pairs:
        a, b = np.asarray(a).astype(dtype), np.asarray(b).astype(dtype)
        with warnings.catch_warnings(record=True) as want_warnings:
            warnings.simplefilter("always")
            want = fn(a, b)
        with warnings.catch_warnings(record=True) as got_warnings:
            warnings.simplefilter("always")
            got = compiled(a, b)
        assert np.array_equal(got, want, equal_nan=True) and np.array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])
        assert [str(w.message) for w in got_warnings] == [str(w.message) for w in want_warnings]
