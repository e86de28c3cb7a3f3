"""Interpolation, onto another grid and at given places, as close to float64 as eager is."""
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional
judge = pytest.importorskip("tests.opinfo.judge")

SIZES = [((9, 7), (5, 4)), ((33, 38), (50, 11)), ((40, 3), (7, 60)), ((37, 31), (41, 23))]


def agrees(fn, *args):
    wide = [a.double() for a in args]
    compiled = tenon.compile(fn, fullgraph=True)(*args)
    assert judge.disagreement(compiled, fn(*args), fn(*wide)) is None
    assert not tenon.stats()["opaque_nodes"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_other_grids(mode, dtype):
    for seed, (size, other) in enumerate(SIZES):
        torch.manual_seed(seed)
        x = torch.randn(2, 3, *size).to(dtype)
        for aligned in (False, True):
            agrees(lambda v: F.interpolate(v, other, mode=mode, align_corners=aligned), x)
            agrees(lambda v: F.interpolate(v, scale_factor=1.7, mode=mode, align_corners=aligned), x.to(memory_format=torch.channels_last))


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_given_places(mode, padding):
    for seed, (size, other) in enumerate(SIZES):
        torch.manual_seed(seed)
        x, places = torch.randn(2, 3, *size), torch.rand(2, *other, 2) * 2.6 - 1.3
        for aligned in (False, True):
            agrees(lambda v, at: F.grid_sample(v, at, mode, padding, aligned), x, places)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_averages_where_it_shrinks(mode):
    for seed, (size, other) in enumerate(SIZES):
        torch.manual_seed(seed)
        x = torch.randn(2, 3, *size)
        for aligned in (False, True):
            agrees(lambda v: F.interpolate(v, other, mode=mode, align_corners=aligned, antialias=True), x)
            agrees(lambda v: F.interpolate(v, scale_factor=(0.3, 1.7), mode=mode, align_corners=aligned, antialias=True), x.to(memory_format=torch.channels_last))


def test_nearest_in_half_precision_takes_eagers_pixel():
    x = torch.arange(2 * 9 * 11.0).reshape(2, 1, 9, 11).half()
    places = (torch.rand(2, 40, 30, 2, generator=torch.Generator().manual_seed(0)) * 2.4 - 1.2).half()
    for padding in ("zeros", "border", "reflection"):
        for aligned in (False, True):
            fn = lambda v, at: F.grid_sample(v, at, "nearest", padding, aligned)  # noqa: E731
            assert torch.equal(tenon.compile(fn)(x, places), fn(x, places)), (padding, aligned)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("channels", [2, 64, 300])
def test_channels_share_their_places(channels, layout):
    torch.manual_seed(channels)
    x, places = torch.randn(3, channels, 19, 23).to(memory_format=layout), torch.rand(3, 21, 37, 2) * 2.6 - 1.3
    agrees(lambda v, at: F.grid_sample(v, at, align_corners=False), x, places)
    agrees(lambda v, at: F.grid_sample(v, at, "nearest", "reflection", True), x, places)
    agrees(lambda v: F.interpolate(v, (33, 47), mode="bicubic").relu() * 2 + v[:, :1, :1, :1], x)
    agrees(lambda v: v * torch.sin(v[:, :1].exp() * 2) + torch.cos(v[0, 0]).tanh(), x)
    dynamic = tenon.compile(lambda v, at: F.grid_sample(v, at, align_corners=False), dynamic=True)
    for size in (21, 40, 5):
        some = places[:, :, torch.arange(size) % 37]
        torch.testing.assert_close(dynamic(x, some), F.grid_sample(x, some, align_corners=False))
