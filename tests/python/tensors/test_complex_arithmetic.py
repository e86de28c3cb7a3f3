"""Arithmetic of complex numbers: by their parts in loop nests, with the values of the libraries."""
import itertools

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

DTYPES = [torch.complex64, torch.complex128]


def numbers(*shape, dtype=torch.complex64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def in_code(run):
    """The backends that ran anything of what `run` compiles, and the opaque calls in it."""
    tenon.reset()
    run()
    backends = tenon.stats()["backends"]
    return {name for name, b in backends.items() if b["nodes"]}


def is_code(run):
    """Whether backends that generate code run all of it: llvm, and where another one is configured before it, that."""
    real = in_code(lambda: tenon.compile(lambda a: a * 2 + 1)(torch.ones(64, 64)))
    found = in_code(run)
    return bool(found) and found <= real | {"llvm"}


FUNCTIONS = {
    "product": lambda a, b: a * b + a,
    "quotient": lambda a, b: a / b,
    "difference": lambda a, b: (a - b, -a, b - 2, 1 - b, 2 / b),
    "number": lambda a, b: (a * 2, a + 1.5, a * (1 + 2j), 3j - b, a / 2j),
    "real beside it": lambda a, b: (a * b.real, b.imag - a, a.real * 1j),
    "squares": lambda a, b: (a**2, b.square(), a**3),
    "exp": lambda a, b: torch.exp(a) * b,
    "sizes": lambda a, b: (a.abs(), b.angle(), abs(a) + 1),
    "parts": lambda a, b: (a.real * 2, (a * b).imag + 1, torch.view_as_real(a * b) * 2),
    "put together": lambda a, b: (torch.complex(a.real * 2, b.imag), torch.polar(a.abs(), b.angle()), torch.view_as_complex(torch.view_as_real(a) * 2) + b),
    "conjugate": lambda a, b: (a.conj() * b, torch.conj_physical(a) + b, (a.conj() * a).real + 1, a.conj().conj() * 2),
    "sums": lambda a, b: ((a * b).sum(-1), a.mean(0), (a + b).sum(), a.mean(dtype=torch.complex128)),
    "equal": lambda a, b: (a == b, a != a * 1, (a == a).all()),
    "moves": lambda a, b: (torch.where(a.real > 0, a * b, b), (a * b).T + 1, torch.cat([a, b * 2], 1), a[:, 1:] * b[:, :-1], a.flip(0) * b),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", FUNCTIONS.values(), ids=list(FUNCTIONS))
@pytest.mark.parametrize("shape", [(3, 5), (7, 257)])
def test_functions(check, fn, dtype, shape):
    with torch.no_grad():
        check(fn, (numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype, seed=1)))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_strided_operands(check, dtype):
    a, b = numbers(40, 66, dtype=dtype), numbers(66, 40, dtype=dtype)
    with torch.no_grad():
        check(lambda a, b: (a * b.T, a[::2, ::3] + 1, a[:, 1:] * 2, b[3] * a[:, 0]), (a, b))
        check(lambda a: a * a + 1, (a.T,))
        check(lambda a: a * a + 1, (a[1:, 1:],))


SPECIAL = [0.0, -0.0, 1.0, -2.5, float("inf"), -float("inf"), float("nan")]


def alike(got, want):
    """Infinities and NaN in the same places; signs of zeros and the last digits are left open, where the library fuses a product with a sum."""
    accuracy = 1e-7 if got.dtype in (torch.complex64, np.complex64) else 2e-16
    for part in ("real", "imag"):
        np.testing.assert_allclose(np.asarray(getattr(got, part)), np.asarray(getattr(want, part)), rtol=4 * accuracy, atol=accuracy)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", [lambda a, b: a * b, lambda a, b: a / b], ids=["product", "quotient"])
def test_infinities_and_nan(fn, dtype):
    each = torch.tensor([complex(x, y) for x, y in itertools.product(SPECIAL, SPECIAL)], dtype=dtype)
    a, b = each[:, None].expand(-1, len(each)).contiguous(), each[None].expand(len(each), -1).contiguous()
    with torch.no_grad(), np.errstate(all="ignore"):
        alike(tenon.compile(fn)(a, b), fn(a, b))
        alike(tenon.compile(fn)(a.numpy(), b.numpy()), fn(a.numpy(), b.numpy()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_of_infinities_and_large_numbers(dtype):
    most = 89.5 if dtype == torch.complex64 else 710.2
    each = torch.tensor([complex(x, y) for x, y in itertools.product([*SPECIAL, most, -most], [*SPECIAL, 1.57])], dtype=dtype)
    with torch.no_grad():
        got, want = tenon.compile(torch.exp)(each), torch.exp(each)
    finite = torch.isfinite(torch.view_as_real(want)).all(-1)
    torch.testing.assert_close(got[finite], want[finite])
    assert torch.equal(torch.isnan(torch.view_as_real(got)), torch.isnan(torch.view_as_real(want)))
    assert torch.equal(torch.isinf(torch.view_as_real(got)), torch.isinf(torch.view_as_real(want)))


def test_quotients_of_large_and_small_numbers_do_not_overflow():
    scales = torch.tensor([1e-30, 1e-18, 1.0, 1e18, 1e30])
    a = (numbers(200, 5) * scales).contiguous()
    for b in (a.flip(1).contiguous(), a.roll(1, 0)):
        with torch.no_grad():
            got = tenon.compile(lambda a, b: a / b)(a, b)
        exact = a.to(torch.complex128) / b.to(torch.complex128)
        kept = (exact.abs() < 1e37) & (exact.abs() > 1e-37)
        assert kept.sum() > 300 and float(((got - exact).abs() / exact.abs())[kept].max()) < 4e-7


def rotary(x, turns):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(3).type_as(x)


def rows_and_turns(dtype):
    return torch.randn(2, 9, 3, 32).to(dtype), torch.polar(torch.ones(9, 16), torch.randn(9, 16))[None, :, None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rotary_embedding(check, dtype):
    with torch.no_grad():
        check(rotary, rows_and_turns(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rotary_embedding_is_code(dtype):
    with torch.no_grad():
        assert is_code(lambda: tenon.compile(rotary)(*rows_and_turns(dtype)))


def test_arithmetic_is_code():
    a, b = numbers(64, 64), numbers(64, 64, seed=1)
    with torch.no_grad():
        for name, fn in FUNCTIONS.items():
            assert is_code(lambda fn=fn: tenon.compile(fn)(a, b)), name


def test_a_conjugate_that_leaves_the_graph_is_lazy_as_ever():
    fn = tenon.compile(lambda a: (a.conj(), a * 2))
    a = numbers(5)
    for _ in range(2):
        got, twice = fn(a)
        assert got.is_conj() and got.data_ptr() == a.data_ptr() and torch.equal(twice, a * 2)


def test_a_conjugate_sees_what_is_written_later():
    def fn(a):
        a = a * 1
        turned = a.conj()
        a.add_(1j)
        return turned * 2

    a = numbers(6)
    with torch.no_grad():
        assert torch.equal(tenon.compile(fn)(a), fn(a))
        assert tenon.compile(lambda a: a.conj().is_conj() and a.conj().mul(2).is_conj() is False)(a)


def test_arrays(check):
    rng = np.random.default_rng(0)
    for dtype in (np.complex64, np.complex128):
        a, b = ((rng.normal(size=(5, 41)) + 1j * rng.normal(size=(5, 41))).astype(dtype) for _ in range(2))
        check(lambda a, b: (a * b + 2j, a / b, np.exp(a), np.abs(a), a.conj() * b, np.conj(a), a.real + b.imag, (a * b).sum(0), a.mean(), a**2, a == b), (a, b))
        assert tenon.stats()["graph_breaks"] == 0


def test_promotion_with_real_operands():
    reals = [np.float32, np.float64, np.int16, np.int64, np.bool_]
    for complex_type, real in itertools.product((np.complex64, np.complex128), reals):
        z, x = np.ones(3, complex_type), np.ones(3, real)
        for fn in (lambda z, x: z * x, lambda z, x: x + z, lambda z, x: x[0] * z, lambda z, x: z[0] * x, lambda z, x: x * 2j):
            got, want = tenon.compile(fn)(z, x), fn(z, x)
            assert got.dtype == want.dtype, (complex_type, real)
            np.testing.assert_allclose(got, want)
            tensors = torch.from_numpy(z), torch.from_numpy(x)
            with torch.no_grad():
                got, want = tenon.compile(fn)(*tensors), fn(*tensors)
            assert got.dtype == want.dtype, (complex_type, real)
            assert torch.equal(got, want)


def test_numbers_keep_their_precision():
    third = 1 / 3 + 1j / 7
    for dtype in (torch.float64, torch.complex128):
        x = torch.ones(4, dtype=dtype)
        with torch.no_grad():
            assert torch.equal(tenon.compile(lambda x: x * third)(x), x * third)


def mandelbrot(c):
    z = torch.zeros_like(c)
    inside = torch.zeros(c.shape, dtype=torch.int32)
    for _ in range(8):
        z = z * z + c
        inside = inside + (z.abs() < 2)
    return inside


def test_an_escape_loop(check):
    c = torch.linspace(-2, 1, 40)[None] + 1j * torch.linspace(-1, 1, 30)[:, None]
    with torch.no_grad():
        check(mandelbrot, (c,))


def filtered(x, response):
    return torch.fft.ifft(torch.fft.fft(x) * response * response.conj())


def test_a_filter_between_transforms(check):
    with torch.no_grad():
        check(filtered, (numbers(4, 64), numbers(64, seed=3)))
    assert tenon.stats()["graph_breaks"] == 0


def test_in_place(check):
    def fn(a, b):
        a = a + 0
        a *= b
        a += 2j
        a[1] = b[0] * 2
        a.real.mul_(2)
        return a

    with torch.no_grad():
        check(fn, (numbers(4, 30), numbers(4, 30, seed=1)), fallbacks=None)


TURNS = torch.polar(torch.ones(4), torch.linspace(-1, 1, 4))


DIFFERENTIABLE = {
    "rotary": lambda x: rotary(x, TURNS),
    "size": lambda x: (torch.complex(x, x * 2) * TURNS[1]).abs(),
    "exp": lambda x: torch.exp(x * 1j).real + (x * (1 + 2j)).imag,
    "conjugate": lambda x: (lambda z: (z.conj() * z).real)(torch.complex(x, x.sin())),
    "quotient": lambda x: (1 / torch.complex(x, x + 1)).imag,
    "sum": lambda x: torch.complex(x, x * x).sum(-1).abs(),
    "joined": lambda x: torch.cat([torch.complex(x, x * x), torch.complex(x * 2, x)]).imag,
}
LEFT_TO_TORCH = {
    "turned round": lambda x: torch.view_as_real(torch.complex(x, x * x).permute(1, 0, 2, 3)[:, 1:]).sum(-1),
    "chosen": lambda x: torch.where(x > 0, torch.complex(x, x * x), torch.complex(x * 2, x)).real,
    "transform": lambda x: torch.fft.fft(x).abs(),
    "complex result": lambda x: torch.complex(x, x * x) * 2,
}


@pytest.mark.parametrize("fn", [*DIFFERENTIABLE.values(), *LEFT_TO_TORCH.values()], ids=[*DIFFERENTIABLE, *LEFT_TO_TORCH])
def test_gradients_of_real_inputs(fn):
    def gradient(run):
        x = torch.randn(2, 5, 3, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
        y = run(x)
        (y.abs() * torch.arange(y.numel()).reshape(y.shape)).sum().backward()
        return y.detach(), x.grad

    compiled = tenon.compile(fn)
    for _ in range(2):
        for got, want in zip(gradient(compiled), gradient(fn)):
            torch.testing.assert_close(got, want, rtol=2e-5, atol=1e-4)
    assert (tenon.stats()["graph_breaks"] == 0) == (fn in DIFFERENTIABLE.values())
