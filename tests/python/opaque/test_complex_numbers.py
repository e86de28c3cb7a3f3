"""Complex numbers: ops of the catalogue move them, calls of the library compute with them, in one graph."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


def complex_array(*shape, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def set_masked(z, value):
    z = z * 1
    z[abs(z) < 1] = value
    return z * 2


def square_masked(z):
    z = z * 1
    small = abs(z) < 1
    z[small] = z[small] ** 2 + 1
    return z


def written_in_place(z):
    z *= z
    z += 1j
    z[1:3] = 2
    z[0] = np.complex64(1 - 1j)
    return z + 1


def escapes(x, y):
    c = x + y[:, None] * 1j
    count, z = np.zeros(c.shape, dtype=np.int64), np.zeros(c.shape, dtype=np.complex128)
    for n in range(4):
        inside = np.less(abs(z), 2.0)
        count[inside] = n
        z[inside] = z[inside] ** 2 + c[inside]
    return z, count


@pytest.mark.parametrize(
    "fn",
    [
        lambda z: z[z.real > 0] * 2,
        lambda z: (lambda w: w * w + 1)(z[abs(z) < 1]),
        lambda z: set_masked(z, 5 + 1j),
        lambda z: set_masked(z, 3),
        square_masked,
        written_in_place,
        lambda z: np.where(z.imag > 0, z, -z),
        lambda z: np.where(z.imag > 0, z, 0),
        lambda z: (z.copy(), z[::-1], z.reshape(2, -1).T, np.concatenate([z, z * 2]), np.stack([z, z])),
        lambda z: (z[0] * 2, z.sum() + z.mean(), z.prod(), np.vdot(z, z)),
        lambda z: (z.conj(), np.conj(z) * z, np.real(z), z.real.copy(), np.isreal(z), np.isnan(z), z.round(1)),
        lambda z: (np.zeros_like(z) + z, np.ones(z.shape, np.complex64) * z, np.full(z.shape, 2j), z.real.astype(complex)),
        lambda z: (z.astype(np.complex64), np.exp(z) / np.sqrt(z), z**3, z == z * 1),
    ],
)
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_arrays(check, fn, dtype):
    check(fn, (complex_array(8).astype(dtype),))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("fn", [lambda z: z.astype(float) + 1, lambda z: (lambda x: [x.__setitem__(x > 0, z[x > 0]), x][1])(z.real * 2)])
def test_parts_that_are_dropped_are_warned_of_once(fn):
    compiled = tenon.compile(fn)
    for _ in range(2):
        with pytest.warns(np.exceptions.ComplexWarning) as caught:
            got = compiled(complex_array(6))
        assert len(caught) == 1 and caught[0].filename == __file__
        with pytest.warns(np.exceptions.ComplexWarning):
            np.testing.assert_array_equal(got, fn(complex_array(6)))


def test_iteration_over_a_plane(check):
    check(escapes, (np.linspace(-1.75, 0.25, 9), np.linspace(-1, 1, 7)))
    assert tenon.stats()["graph_breaks"] == 0


def test_parts_of_results_are_views_of_them():
    fn = tenon.compile(lambda z: (lambda w: (w, w.real, w.imag[1:]))(z * 2))
    for _ in range(2):
        whole, real, imag = fn(complex_array(3, 4))
        assert np.shares_memory(whole, real) and real.strides == (64, 16) and imag.strides == (64, 16)
        np.testing.assert_array_equal(real, whole.real)
        np.testing.assert_array_equal(imag, whole.imag[1:])
    z = complex_array(5)
    real = tenon.compile(lambda z: z.real)(z)
    real[:] = 7
    assert (z.real == 7).all() and real.flags.writeable
    only = tenon.compile(lambda z: np.fft.ifft(np.fft.fft(z)).real)(z)
    np.testing.assert_array_equal(only, np.fft.ifft(np.fft.fft(z)).real)
    assert only.strides == (16,)


def test_parts_of_tensors_are_views_of_them():
    fn = tenon.compile(lambda z: (lambda w: (w, w.imag))(z * 2))
    z = torch.from_numpy(complex_array(3, 4))
    whole, imag = fn(z)
    assert imag.stride() == (8, 2) and torch.equal(imag, (z * 2).imag)
    imag.zero_()
    assert (whole.imag == 0).all()


@pytest.mark.parametrize(
    "fn",
    [
        lambda z: z[z.abs() < 1] * 2,
        lambda z: set_masked(z, 3j),
        square_masked,
        lambda z: z.masked_fill(z.abs() < 1, 0),
        lambda z: torch.where(z.real > 0, z, -z),
        lambda z: (torch.cat([z, z * 2]), torch.nn.functional.pad(z, (1, 1)), z.flip(0), z.isreal(), z.conj_physical()),
        lambda z: (z.add_(1), z.sum(), z.abs()),
    ],
)
def test_tensors(check, fn):
    with torch.no_grad():
        check(fn, (torch.from_numpy(complex_array(8)),))
    assert tenon.stats()["graph_breaks"] == 0
