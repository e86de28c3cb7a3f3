"""Whose memory the arrays are that NumPy's functions give: their base, whether they own it, how they lie, what they share."""
import numpy as np
import pytest

import tenon

# By the letters of the arguments: a matrix, a vector, a square matrix, a block, a matrix of ints.
EXPRESSIONS = """
v np.linspace(0, v[-1], 5)
v np.linspace(v[0], 4, 5, endpoint=False)
v np.linspace(v[0], 4, 5, retstep=True)
v (np.linspace(0, 1, 5), v)
v np.linspace(v, v + 1, 3, axis=-1)
v np.logspace(0, v[1], 4)
v np.geomspace(v, v * 8, 4)
m np.kron(m, m)
mv np.kron(m, v)
m np.kron(m, m)[0]
m (lambda q: (q, q.T, q.ravel()))(np.kron(m, m))
m np.gradient(m)
m np.diff(m, axis=0)
m np.ediff1d(m)
m np.cumsum(m)
m np.sort(m, axis=0)
m np.unique(m, return_inverse=True)
v np.unique(v, return_inverse=True)
m np.unique(m, axis=0)
v np.union1d(v, v + 1)
m np.isin(m, [1, 2])
m np.nonzero(m)
m np.argwhere(m)
m np.flatnonzero(m)
m np.where(m > 3, m, 0)
v np.where(v > 1)
v v.nonzero()
m np.where(m)
m m.nonzero()
m np.select([m > 3, m > 1], [m, -m], 7)
m np.take(m, [0, 2], axis=1)
m np.repeat(m, 2, axis=0)
m np.tile(m, 2)
m np.tile(m, (1, 1, 1))
m np.roll(m, 1)
m np.roll(m, (1, 1), (0, 1))
m np.rot90(m)
m np.flip(m)
m np.pad(m, 1, mode="reflect")
m np.concatenate([m, m], axis=None)
m np.stack([m, m], axis=-1)
v np.column_stack([v, v])
m np.block([[m, m], [m, m]])
m np.append(m, m, axis=0)
m np.insert(m, 1, 5, axis=1)
m np.delete(m, 1, axis=0)
v np.trim_zeros(v)
m np.resize(m, (5, 5))
m np.split(m, [1], axis=0)
m np.array_split(m, 3, axis=1)
v np.meshgrid(v, v, sparse=True)
v np.meshgrid(v, v, copy=False)
m np.indices(m.shape)
v np.mgrid[0:3, 0:4] + v[0]
v np.c_[v, v]
m np.diag(m)
v np.diag(v, 1)
m np.diagonal(m)
m np.tril(m)
v np.vander(v)
v (np.eye(3), np.zeros((2, 2), order="F"), np.full((2,), 3.0), np.ones((2, 3)).T, np.arange(6).reshape(2, 3))
m (np.frombuffer(b"abcdefgh", dtype=np.uint8), m)
m np.zeros_like(m)
v np.outer(v, v)
m np.inner(m, m)
m m @ m.T
m np.tensordot(m, m, axes=([0], [0]))
m np.tensordot(m, m, 0)
m np.tensordot(m, m, 2)
v np.convolve(v, v[:2])
m np.einsum("ij->ji", m)
m np.einsum("ij,kj->ik", m, m, optimize=True)
s np.einsum("ii->i", s)
s np.linalg.inv(s)
s np.linalg.qr(s)
s np.linalg.matrix_power(s, 3)
s np.linalg.multi_dot([s, s, s])
m np.linalg.norm(m, axis=1, keepdims=True)
m np.fft.rfft(m).real
m np.fft.fftshift(m)
m np.sum(m, 0)
m np.mean(m, 1, keepdims=True)
m np.average(m, 1, returned=True)
m np.median(m, 1, keepdims=True)
m np.percentile(m, [30, 60], axis=0)
m np.quantile(m, [0.1, 0.5], axis=1, keepdims=True)
m np.nanquantile(m, [0.2, 0.4], 0)
m np.argmin(m, 1, keepdims=True)
m np.clip(m, 1, 5)
m np.nan_to_num(m)
m np.real(m)
m (m * 1j).imag
m np.angle(m)
m np.modf(m)
m np.divmod(m, 3)
m np.add.outer(m, m)
m np.add.reduceat(m, [0, 2])
m np.sinc(m)
m np.unwrap(m)
v np.interp([1.5, 2.5], v, v)
v np.histogram(v, bins=3)
m np.cov(m)
v np.cov(v)
v np.polyfit(v, v, 1)
v np.polymul(v, v)
m np.apply_along_axis(np.sum, 0, m)
m np.array(m, ndmin=3)
m np.array([m, m])
m np.asarray(m, order="F")
m np.asfortranarray(m + 1)
m np.copy(m, order="F")
m m.copy("K")
m m.astype(float, copy=False)
m m.astype(np.float32, order="F")
m np.permute_dims(m, (1, 0))
b np.moveaxis(b, 0, -1)
m m.reshape(-1)
m m.reshape(4, -1, order="F")
m m.ravel("K")
m m.flatten("F")
m np.squeeze(m[None])
m np.atleast_3d(m)
m np.broadcast_to(m, (2, *m.shape))
m np.broadcast_arrays(m, m[0])
m m.view(np.int64)
m m[:, 1]
m m[:, [0, 1]]
m m[np.newaxis, :, [1]]
m m[m > 3]
m m[...]
m m.flat[1:4]
m m.compress([True, False], 0)
m +m
m m // 2
i i << 1
i np.isclose(i, 3)
i np.unravel_index(i, (4, 4))
m (m * 2).reshape(-1)
m (m * 2)[:, 1:]
m np.split(m + 1, [1])
m (lambda q: (q[0], q))(m + 1)
m np.moveaxis(m * 2, 0, -1)
m m.mT
m np.cumulative_sum(m, axis=0)
m np.sum(m, axis=0).reshape(-1, 1)
""".strip().splitlines()

MAKERS = {
    "m": lambda: np.arange(12.0).reshape(3, 4),
    "v": lambda: np.arange(5.0) + 1,
    "s": lambda: np.arange(9.0).reshape(3, 3) + np.eye(3),
    "b": lambda: np.arange(24.0).reshape(2, 3, 4),
    "i": lambda: np.arange(12).reshape(3, 4),
}
LAYOUTS = {
    "rows": lambda a: a,
    "columns": np.asfortranarray,
    "steps": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "backwards": lambda a: a[::-1],
    "one row": lambda a: a[:1],
}
# The array that nobody has is of as many elements as are found.
OPEN = ("np.argwhere(m)", "np.flatnonzero(m)", "np.where(v > 1)", "v.nonzero()", "np.where(m)", "m.nonzero()")


def arrays_in(result):
    if isinstance(result, (list, tuple)):
        return [array for part in result for array in arrays_in(part)]
    return [result] if isinstance(result, np.ndarray) else []


def described(result, arguments, bases=True):
    """What a program can see of the arrays of a result but their elements."""
    arrays = arrays_in(result)
    found = []
    for a in arrays:
        flags = a.flags
        found.append((str(a.dtype), a.shape, a.strides, flags.owndata, flags.writeable, flags.c_contiguous, flags.f_contiguous, a.base is None))
        found.append([(a is given, a.base is given, np.shares_memory(a, given)) for given in arguments])
        hidden = a.base is not None and not any(a.base is given for given in arguments)
        if bases and hidden and isinstance(a.base, np.ndarray):
            found.append((a.base.shape, a.base.strides, str(a.base.dtype)))
    found.append([(a is b, a.base is b, a.base is not None and a.base is b.base, np.shares_memory(a, b)) for k, a in enumerate(arrays) for b in arrays[:k]])
    return found


def elements(result):
    return [array.tolist() for array in arrays_in(result)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_functions(expression):
    names, code = expression.split(" ", 1)
    fn = eval(f"lambda {','.join(names)}: {code}", {"np": np})
    for layout in LAYOUTS.values():

        def make():
            return [layout(MAKERS[name]()) for name in names]

        plain = make()
        try:
            want = fn(*plain)
        except (ValueError, IndexError):  # no call for one row
            continue
        compiled = tenon.compile(fn)
        for _ in range(2):
            given = make()
            got = compiled(*given)
            assert described(got, given, code not in OPEN) == described(want, plain, code not in OPEN)
            np.testing.assert_allclose(np.concatenate([np.ravel(e) for e in elements(got) or [[]]]), np.concatenate([np.ravel(e) for e in elements(want) or [[]]]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("code", ["np.kron(m, m[:2, :2])", "np.isclose(m, 3)", "np.tile(m, 2)", "np.roll(m, 1)", "m.reshape(-1)", "np.cumsum(m, 1)", "np.median(m, 1, keepdims=True)", "np.isin(m, [1, 2])"])
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_large_arrays_as_small_ones(code, layout):
    fn = eval(f"lambda m: {code}", {"np": np})
    m = LAYOUTS[layout](np.arange(70 * 61.0).reshape(70, 61))
    assert described(tenon.compile(fn)(m), [m]) == described(fn(m), [m])


@pytest.mark.parametrize(
    "fn", [lambda n: np.arange(n) * 2, lambda n: np.zeros((n, 2)), lambda n: np.sort(np.arange(n)[::-1] + 0), lambda n: np.cumsum(np.ones(n)), lambda n: np.concatenate([np.ones(n), np.zeros(n)])]
)
def test_what_owns_its_memory_is_resized(fn):
    compiled = tenon.compile(fn)
    for _ in range(2):
        got, want = compiled(3), fn(3)
        for size in (7, 2, 2000, 100_000, 1):
            got.resize(size, refcheck=False)
            want.resize(size, refcheck=False)
            np.testing.assert_array_equal(got, want)
            assert got.flags.owndata and got.base is None


def test_what_shows_memory_of_another_array_is_not_resized():
    def tried(fn, *arguments):
        with pytest.raises(ValueError, match="own"):
            fn(*arguments).resize(40)

    a = np.ones((2, 3))
    for fn in (lambda a: a.T, lambda a: (a + 1)[0], lambda a: np.kron(a, a), lambda a: a.reshape(-1)):
        tried(fn, a)
        tried(tenon.compile(fn), a)


@pytest.mark.parametrize("ask", [lambda a: a.flags.owndata, lambda a: a.flags["OWNDATA"], lambda a: (a + 1).flags.owndata, lambda a: a[1:].flags.owndata, lambda a: a.T.copy().flags.owndata])
def test_whose_memory_it_is(ask):
    compiled, whole = tenon.compile(ask), np.ones((4, 4))
    for a in (whole, whole[1:], whole.reshape(2, 8), np.linspace(0, 1, 5), whole):
        assert compiled(a) == ask(a)
