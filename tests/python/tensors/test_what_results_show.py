"""What a result shows beside its values: layout, version, whose memory it has, for tensors and arrays that lie in many ways."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional

TENSORS = {
    "rows": lambda: torch.arange(-5.0, 7).reshape(3, 4), "columns": lambda: torch.arange(-5.0, 7).reshape(4, 3).t(),
    "part": lambda: torch.arange(-5.0, 43).reshape(6, 8)[::2, 1:5], "expanded": lambda: torch.arange(4.0).expand(3, 4),
    "ints": lambda: torch.arange(-5, 7).reshape(4, 3).t(), "one row": lambda: torch.full((1, 4), 2.0), "one column": lambda: torch.arange(12.0).reshape(4, 3)[:, 1:2],
    "one row of columns": lambda: torch.full((4, 1), 2.0).t(),
    "none": lambda: torch.empty(0, 4), "no rows of columns": lambda: torch.empty(4, 0).t(), "no columns of columns": lambda: torch.empty(0, 4).t(),
    "turned": lambda: torch.arange(-12.0, 12).reshape(2, 3, 4).transpose(0, 2), "steps": lambda: torch.arange(-3.0, 9)[::2],
}
IMAGES = {
    "rows": lambda: torch.linspace(-2, 2, 128).reshape(2, 4, 4, 4), "channels last": lambda: torch.linspace(-2, 2, 128).reshape(2, 4, 4, 4).to(memory_format=torch.channels_last),
    "permuted": lambda: torch.linspace(-2, 2, 128).reshape(4, 4, 2, 4).permute(2, 0, 1, 3), "one image": lambda: torch.linspace(-2, 2, 64).reshape(1, 4, 4, 4).to(memory_format=torch.channels_last),
    "part of the channels": lambda: torch.linspace(-2, 2, 256).reshape(2, 8, 4, 4).to(memory_format=torch.channels_last)[:, :4],
    "one image of an image": lambda: torch.linspace(-2, 2, 64).reshape(4, 4, 4)[None].to(memory_format=torch.channels_last)[0][None],
    "one channel": lambda: torch.linspace(-2, 2, 32).reshape(2, 1, 4, 4).to(memory_format=torch.channels_last), "no images": lambda: torch.empty(0, 4, 4, 4).to(memory_format=torch.channels_last),
}
ARRAYS = {
    "rows": lambda: np.arange(-5.0, 7).reshape(3, 4).copy(), "columns": lambda: np.arange(-5.0, 7).reshape(4, 3).T, "part": lambda: np.arange(-5.0, 43).reshape(6, 8)[::2, 1:5],
    "backwards": lambda: np.arange(-5.0, 7).reshape(3, 4)[::-1, ::-1], "Fortran": lambda: np.arange(-5.0, 7).reshape(3, 4).copy("F"), "ints": lambda: np.arange(-5, 7).reshape(4, 3).T,
    "none": lambda: np.empty((4, 0)).T, "one column": lambda: np.full((4, 1), 2.0).T, "spread": lambda: np.broadcast_to(np.arange(4.0), (3, 4)), "steps": lambda: np.arange(-3.0, 9)[::2],
}

OF_TENSORS = """x.abs() x.clone() x.contiguous() x.sort() x.argsort() x.cumsum(0) x.flip(0) x.roll(1,0) x.t() x.mT x.reshape(-1) x.unsqueeze(0) x.squeeze() x.sum(0) x.mean(-1) x.amax(0)
x.max(0) x.argmax(0) x.nonzero() x.quantile(.5) x.quantile(.25,0) x.nanquantile(.5) x.tril() x.diagonal() x.softmax(-1) x.double() x.float() x.clamp(0,1) x.masked_fill(x>0,1) x[0] x[::2] x[...,None]
x[x>0] x[[0]] x.unfold(0,1,1) x.split(1) x.unbind(-1) x.isclose(x) x+1 x//2 x>0 x==x 2**x x**2 torch.pow(2,x) 1-x torch.rsub(x,1) torch.where(x>0,x,0) x.fmod(2) x.copysign(-1) x.nan_to_num()
x.add_(1) x.mul_(x) x.t_() x.fill_(1) torch.cat([x,x]) torch.stack([x,x],-1) torch.zeros_like(x) torch.full_like(x,3) torch.broadcast_tensors(x,x*2) torch.einsum('...i,...j->...ij',x,x)
F.one_hot(x.argmax(-1)%5,5) F.relu(x) F.prelu(x,torch.tensor([.1])) F.pad(x,(0,0)) F.pad(x,(1,0)) F.normalize(x,dim=0) F.dropout(x,.5,False) x.type_as(x) x.view_as(x) x.detach()
x.detach_() x.ravel() x.cov() x.repeat_interleave(2) x.repeat_interleave(2,0) torch.einsum('...i,...i->...',x,x) F.avg_pool1d(x,2) F.adaptive_avg_pool1d(x,2) torch.unsafe_chunk(x,2) x.unsafe_split(1)
x.fliplr() x.deg2rad() F.hardtanh(x) F.relu6(x) F.pad(x,(-1,0)) torch.linalg.matrix_power(x[:,:3],0) torch.linalg.matrix_power(x[:,:3],2) F.pad(x,()) x.__rmatmul__(x.mT) torch.linalg.matrix_rank(x) torch.linalg.matrix_rank(x,atol=.1) F.soft_margin_loss(x,x.sign()) F.soft_margin_loss(x,x,reduction='none')""".split()
OF_IMAGES = """F.avg_pool2d(x,2) F.max_pool2d(x,2,return_indices=True) F.interpolate(x,scale_factor=2) F.interpolate(x,size=(3,3),mode='bilinear') F.pad(x,(1,1,1,1)) F.batch_norm(x,torch.zeros(x.shape[1]),torch.ones(x.shape[1])) x.mean((2,3)) x.flatten(1)
x.permute(0,2,3,1).contiguous() x*2 x+x.mean(1,keepdim=True) torch.cat([x,x],1) x.softmax(1) x[:,:1] x.roll(1,2) x.flip(1) x.clone() x.double() x.quantile(.5,1) F.prelu(x,torch.ones(x.shape[1])) x.amin(1) F.pixel_unshuffle(x,2) F.instance_norm(x)
F.interpolate(x.to(torch.complex64),scale_factor=2)""".split()
OF_ARRAYS = """np.abs(a) a+1 a>0 np.sort(a) np.argsort(a,0) np.cumsum(a,0) np.flip(a) np.roll(a,1) a.T a.reshape(-1) a.ravel() a.ravel('F') a.flatten() np.squeeze(a) a[0] a[::-1] a[a>0] a[[0]] a[...,None] a.sum(0)
np.mean(a,-1) a.max() a.argmax(0) np.median(a,0) np.nonzero(a>9) np.where(a>0,a,0) np.unique(a) np.tril(a) np.diagonal(a) a.astype(float) a.astype('f4') a.copy() np.array(a) np.asarray(a)
np.ascontiguousarray(a) np.asfortranarray(a) np.clip(a,0,1) np.take(a,[0],0) np.repeat(a,2,0) np.tile(a,2) np.concatenate([a,a]) np.stack([a,a],-1) np.split(a,1) np.atleast_2d(a) np.zeros_like(a)
np.pad(a,1) np.gradient(a.ravel()) a.view() np.maximum(a,0) a//2 np.percentile(a,50) a.round(1) np.nan_to_num(a)""".split()


def whose(base, given, given_base):
    return "nobody's" if base is None else "the argument's" if base is given or (given_base is not None and base is given_base) else "another's"


def shown(value, given):
    if torch.is_tensor(value):
        memory = whose(value._base, given, given._base if torch.is_tensor(given) else None)
        return [value.dtype, value.shape, value.stride(), value.storage_offset() if memory != "another's" else None, value._version, memory, value.requires_grad, value is given]
    if isinstance(value, np.ndarray):
        return [value.dtype, value.shape, value.strides, value.flags.owndata, value.flags.writeable, whose(value.base, given, given.base), value is given]
    if isinstance(value, (tuple, list)):
        return [type(value), *(shown(each, given) for each in value)]
    return [type(value)]


def values(value):
    if isinstance(value, (tuple, list)):
        return [values(each) for each in value]
    return value.double().numpy().tolist() if torch.is_tensor(value) else np.asarray(value, float).tolist()


def outcome(fn, make):
    given = make()
    try:
        result = fn(given)
    except Exception as error:
        return type(error)
    return shown(result, given), shown(given, None if torch.is_tensor(given) else given), values(result)


@pytest.mark.parametrize("kind, expressions, layouts", [("x", OF_TENSORS, TENSORS), ("x", OF_IMAGES, IMAGES), ("a", OF_ARRAYS, ARRAYS)], ids=["tensors", "images", "arrays"])
def test_results_show_what_eager_execution_s_do(kind, expressions, layouts):
    wrong = []
    with torch.no_grad(), np.errstate(all="ignore"):
        for expression in expressions:
            for name, make in layouts.items():
                fn = eval(f"lambda {kind}: {expression}", {"np": np, "torch": torch, "F": F})
                want, got = outcome(fn, make), outcome(tenon.compile(fn), make)
                seen = (want, got) if isinstance(want, type) or isinstance(got, type) else (want[:2], got[:2])
                if seen[0] != seen[1]:
                    wrong.append((expression, name, *seen))
                elif not isinstance(want, type):
                    torch.testing.assert_close(got[2], want[2], rtol=1e-5, atol=1e-6, equal_nan=True)
            tenon.reset()
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(3, 4), (0, 4), ()])
def test_versions_of_what_is_drawn(p, shape):
    for function in (F.alpha_dropout, F.dropout):
        x = torch.ones(shape)
        assert tenon.compile(lambda x: function(x, p, True))(x)._version == function(x, p, True)._version


def test_what_the_program_asks_of_tensors_that_it_makes():
    def asked(x):
        y = x * 2
        seen = [y._version, y.output_nr]
        row, apart, uncounted = y[0], y.detach(), y.data
        for written in (y, row, apart, uncounted):
            written.add_(1)
            seen.append((y._version, row._version, apart._version))
        drawn = F.dropout(x, 1.0)
        return y, seen, drawn._version

    x = torch.ones(2, 3)
    want, compiled = asked(x), tenon.compile(asked)
    for _ in range(3):
        got = compiled(x)
        assert got[1:] == want[1:] and got[0]._version == want[0]._version
    assert tenon.stats()["graph_breaks"] == 0


def test_what_the_program_asks_of_tensors_that_share_memory():
    def asked(x, y):
        view, apart = (y * 2).view(-1), x.data
        apart.add_(1)
        return view._base.shape, x._version, y._version, y._base is None, apart._version

    def call(f):
        x, y = torch.ones(2, 3), torch.ones(6)
        y.add_(1)
        return f(x, y.view(2, 3))

    compiled = tenon.compile(asked)
    for _ in range(3):
        assert call(compiled) == call(asked)


W, BIAS = torch.linspace(-1, 1, 12).reshape(4, 3), torch.ones(4)
OF_SEVERAL_STEPS = {
    "linear of a vector": lambda x: torch.nn.functional.linear(x[0, 0], W, BIAS),
    "linear of rows": lambda x: torch.nn.functional.linear(x[0], W, BIAS),
    "linear of matrices": lambda x: torch.nn.functional.linear(x, W, BIAS),
    "linear without a bias": lambda x: torch.nn.functional.linear(x, W),
    "inner": lambda x: torch.inner(x, W),
    "inner of vectors": lambda x: torch.inner(x[0, 0], W[0]),
    "places": lambda x: torch.where(x > 0)[0],
    "places as a tuple": lambda x: x.nonzero(as_tuple=True)[1],
    "pooled": lambda x: torch.nn.functional.adaptive_max_pool1d(x, 2),
}


@pytest.mark.parametrize("name", OF_SEVERAL_STEPS)
def test_results_of_functions_of_several_steps_show_whether_they_are_views(name):
    x = torch.linspace(-1, 1, 30).reshape(2, 5, 3)
    compiled = tenon.compile(OF_SEVERAL_STEPS[name])
    for _ in range(3):
        want, got = OF_SEVERAL_STEPS[name](x), compiled(x)
        assert (got._is_view(), got._base is None) == (want._is_view(), want._base is None)
        assert shown(got, x) == shown(want, x)
        torch.testing.assert_close(got, want)
    assert tenon.stats()["graph_breaks"] == 0


PARTS = {
    "the parts of what is made": lambda z: torch.view_as_real(z * 2),
    "some of them": lambda z: torch.view_as_real(z * 2)[1:, :, 0],
    "made flat": lambda z: torch.view_as_real(z * 2).flatten(1),
    "one part": lambda z: (z * 2).imag,
    "the parts of the argument": lambda z: torch.view_as_real(z),
    "made of the parts of what is made": lambda z: torch.view_as_complex(torch.view_as_real(z).clone()),
    "made of parts that lie flat": lambda z: torch.view_as_complex((z.real * 2).reshape(3, 2, 2)),
    "some of what is made of parts": lambda z: torch.view_as_complex((z.real * 2).reshape(3, 2, 2))[::2, 1],
    "made of parts of what is made": lambda z: torch.view_as_complex((z.real * 2).view(6, 2)[2:]),
    "under another dtype": lambda z: (z.real * 2).view(torch.int32),
    "as complex numbers under another dtype": lambda z: (z.real * 2).view(torch.complex64),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_complex_numbers_show_whether_they_are_views(name):
    z = torch.randn(3, 4, dtype=torch.complex64)
    compiled = tenon.compile(PARTS[name])
    for _ in range(3):
        want, got = PARTS[name](z), compiled(z)
        assert (got._is_view(), got._base is z) == (want._is_view(), want._base is z)
        assert shown(got, z) == shown(want, z)
        torch.testing.assert_close(got, want)
        if want._base is not None:
            assert (got._base.dtype, got._base.shape, got._base.stride()) == (want._base.dtype, want._base.shape, want._base.stride())


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1:], lambda x: x[:, ::2], lambda x: x[..., 2:4]], ids=["whole", "rows", "columns", "two of four"])
def test_complex_numbers_made_of_an_argument_s_parts_are_views_of_it(part):
    x = torch.randn(3, 4, 4) if part(torch.empty(3, 4, 4)).shape[-1] == 2 else torch.randn(3, 4, 2)
    compiled = tenon.compile(lambda x: (torch.view_as_complex(part(x)), torch.view_as_complex(part(x))[0] * 2))
    for _ in range(3):
        (got, twice), want = compiled(x), torch.view_as_complex(part(x))
        assert got._base is x and got.data_ptr() == want.data_ptr() and got.stride() == want.stride()
        torch.testing.assert_close((got, twice), (want, want[0] * 2))
        got.mul_(1j)  # is seen in the argument
        torch.testing.assert_close(torch.view_as_complex(part(x)), got)
    assert tenon.stats()["graph_breaks"] == 0
