"""Functions of torch that are made of several ops, against eager."""
import math

import pytest
from probe import Refused, compare

torch = pytest.importorskip("torch")


def check(name, *args, **kwargs):
    return compare(name, list(args), kwargs, 8)


def t(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def test_diagonals():
    for offset in (-2, 0, 1):
        check("torch.diag_embed", t(2, 3), offset), check("torch.diag", t(4), offset), check("torch.diag", t(4, 5), offset), check("torch.diagflat", t(2, 2), offset)
    check("torch.diag_embed", t(2, 3), dim1=0, dim2=2), check("torch.diagonal_scatter", t(4, 5), t(4), 1), check("torch.diagonal_scatter", t(3, 4, 5), t(4, 3), 0, 0, 2)


def test_grids_and_blocks():
    for indexing in ("ij", "xy"):
        check("torch.meshgrid", t(2), t(3), t(4), indexing=indexing)
    check("torch.cartesian_prod", t(2), t(3)), check("torch.block_diag", t(2, 3), t(4), torch.tensor(2.0)), check("torch.atleast_3d", t(2), t(2, 3)), check("torch.dstack", [t(2, 3), t(2, 3)])


def test_turns_and_pixels():
    for k in (-1, 0, 2, 5):
        check("torch.rot90", t(2, 3, 4), k, (0, 2))
    check("torch.pixel_shuffle", t(2, 8, 3, 4), 2), check("torch.pixel_unshuffle", t(2, 6, 4), 2), check("torch.channel_shuffle", t(2, 6, 3), 3)
    check("torch.fft.fftshift", t(5, 4)), check("torch.fft.ifftshift", t(5, 4), 0)


def test_a_copy_of_a_view_is_the_view():
    check("torch.permute_copy", t(2, 3), (1, 0)), check("torch.expand_copy", t(1, 3), (2, 3)), check("torch.unbind_copy", t(2, 3)), check("torch.diagonal_copy", t(3, 3))


def test_windows_taken_apart_and_put_together():
    columns = torch.nn.functional.unfold(t(2, 3, 6, 5), (2, 3), 1, 1, (2, 1))
    check("torch._C._nn.im2col", t(2, 3, 6, 5), (2, 3), (1, 1), (1, 1), (2, 1)), check("torch._C._nn.col2im", columns, (6, 5), (2, 3), (1, 1), (1, 1), (2, 1))


def test_products_and_distances():
    check("torch.cross", t(4, 3), t(4, 3), dim=1), check("torch.linalg.cross", t(3, 4), t(3, 1), dim=0), check("torch.linalg.vecdot", t(3, 4), t(4)), check("torch.linalg.multi_dot", [t(2, 3), t(3, 4), t(4)])
    for p in (0.0, 1.0, 2.0, math.inf):
        check("torch.cdist", t(2, 3, 4), t(5, 4), p), check("torch.dist", t(3, 4), t(4), p)
    check("torch.addmv", t(3), t(3, 4), t(4), beta=2, alpha=0.5), check("torch.addr", t(3, 4), t(3), t(4), beta=0), check("torch.addbmm", t(2, 4), t(5, 2, 3), t(5, 3, 4))
    check("torch.trapezoid", t(3, 5)), check("torch.trapezoid", t(3, 5), t(5)), check("torch.cumulative_trapezoid", t(3, 5), dx=0.5)
    whole, places = torch.tensor([[3, -1, 4], [1, 5, -9]]), torch.tensor([0, 2, 7])
    for name in ("torch.trapezoid", "torch.cumulative_trapezoid"):
        check(name, whole), check(name, whole, places), check(name, whole, dx=0.5)


def test_numbers():
    x = torch.tensor([0.0, -0.0, 1.5, -2.0, math.nan, math.inf, -math.inf])
    for name in ("torch.angle", "torch.special.entr", "torch.special.ndtr", "torch.isreal", "torch.real"):
        check(name, x)
    check("torch.special.xlog1py", x, 1 + x.abs()), check("torch.ldexp", x, torch.tensor(3)), check("torch.float_power", t(3).abs(), 2), check("torch.aminmax", t(3, 4), dim=1)
    check("torch.logcumsumexp", t(3, 40), 1), check("torch.logit", torch.rand(5), 0.2), check("torch.heaviside", torch.tensor([-1, 0, 2]), torch.tensor([7]))
    check("torch.heaviside", torch.tensor([float("nan"), -1, 0, 2]), torch.tensor(0.5))
    for dtype in (torch.uint8, torch.int16, torch.float64):
        check("torch.linalg.vander", torch.tensor([1, 2, 20], dtype=dtype), N=4)


def test_what_depends_on_values_is_refused():
    with pytest.raises(Refused, match="number of classes"):
        check("torch._C._nn.one_hot", torch.tensor([0, 2, 1]))
    check("torch._C._nn.one_hot", torch.tensor([[0, 2], [1, 1]]), 4)


def test_safe_softmax():
    rows = t(3, 4)
    rows[1] = -math.inf
    rows[2, 0] = -math.inf
    for dim in (0, 1):
        check("torch._safe_softmax", rows, dim), check("torch._safe_softmax", rows, dim, dtype=torch.float64)
    check("torch._safe_softmax", torch.full((2, 3), math.nan), -1)


def test_integers_wrap_around_where_torch_computes_with_them():
    x = torch.tensor([200, 100, 250, 3, 255, 131], dtype=torch.uint8)
    check("torch.trapezoid", x), check("torch.trapezoid", x[::2], dx=3), check("torch.cumulative_trapezoid", x), check("torch.nn.functional.softsign", x)
    check("torch.nn.functional.softsign", torch.tensor([-(2**31), 2**31 - 1, -5], dtype=torch.int32))
    truths = torch.tensor([[True, False], [False, False]])
    for alpha in (0, 1, 2, True, False):
        check("torch.add", truths, truths[0], alpha=alpha)


def test_covariance():
    x = t(3, 7)
    check("torch.cov", x), check("torch.cov", x[0]), check("torch.cov", x.t(), correction=0), check("torch.cov", torch.arange(12).reshape(3, 4) % 5)
    check("torch.corrcoef", x), check("torch.corrcoef", x[1])
    with pytest.raises(Refused, match="observations"):  # torch warns
        check("torch.cov", x[:, :1])
    with pytest.raises(Refused, match="weights"):
        check("torch.cov", x, aweights=t(7).abs())
