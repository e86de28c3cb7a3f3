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


FACTORS = [1, 1.0, 0.5, 2, 1.3, 0.7, 1.1, 0.99, 3.7, 1 / 3, 2 / 3]


def bit_for_bit(mode, x, ways):
    def fn(v):
        return [F.interpolate(v, mode=mode, **way) for way in ways]

    for way, got, want in zip(ways, tenon.compile(fn)(x), fn(x)):
        assert torch.equal(got, want) and got.stride() == want.stride(), (mode, way, tuple(x.shape), x.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.uint8])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("shape", [(2, 3, 16), (1, 1, 5), (2, 3, 5, 7), (1, 5, 8, 4), (2, 1, 3, 1), (1, 2, 3, 5, 4)])
def test_nearest_by_sizes_and_factors(shape, mode, dtype):
    torch.manual_seed(0)
    x, rank = (torch.rand(shape) * 200).to(dtype), len(shape) - 2
    ways = [{"scale_factor": factor} for factor in FACTORS if all(int(factor * n) for n in shape[2:])]
    ways += [{**way, "recompute_scale_factor": recompute} for way in ways[::3] for recompute in (False, True)]
    ways += [{"size": size} for size in (1, 2, 7, 13, shape[2], 2 * shape[2])]
    if rank > 1:
        ways += [{"scale_factor": (1.0, 1.5, 2.6)[:rank]}, {"scale_factor": (1.3, 1, 1.0001)[:rank]}, {"size": (shape[2], *(2 * n for n in shape[3:]))}]
    bit_for_bit(mode, x, ways)
    if rank == 2:
        bit_for_bit(mode, x.to(memory_format=torch.channels_last), ways)
    if rank == 3:
        bit_for_bit(mode, x.permute(0, 4, 1, 2, 3), ways[:6])


@pytest.mark.parametrize("mode", ["linear", "bilinear", "bicubic", "trilinear", "area"])
def test_factors_that_leave_sizes_as_they_are(mode):
    rank = {"linear": 1, "trilinear": 3}.get(mode, 2)
    torch.manual_seed(0)
    x = torch.rand((2, 3, 5, 7, 4)[: 2 + rank])

    def fn(v):
        ways = [{"scale_factor": factor} for factor in FACTORS] + [{"size": 5}, {"scale_factor": (1.0, 1.1, 1.5)[:rank]}]
        ways += [{"scale_factor": 1.1, "align_corners": True}, {"scale_factor": 0.99, "recompute_scale_factor": True}] if mode != "area" else []
        ways += [{"scale_factor": 1.1, "antialias": True}, {"size": 3, "antialias": True}] if mode in ("bilinear", "bicubic") else []
        return [F.interpolate(v, mode=mode, **way) for way in ways]

    for laid_out in (x, x[:, :1], x.to(memory_format=torch.channels_last) if rank == 2 else x.mT.contiguous().mT):
        for got, want in zip(tenon.compile(fn)(laid_out), fn(laid_out)):
            assert got.stride() == want.stride()
            torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_samples_of_an_image_have_the_bits_of_eager_execution(mode, padding, align):
    # What is rounded to uint8 afterwards shows the last bit.
    generator = torch.Generator().manual_seed(3)
    image = torch.randint(0, 256, (2, 3, 19, 23), generator=generator).float()
    grid = torch.rand(2, 31, 17, 2, generator=generator) * 2.6 - 1.3

    def fn(image, grid):
        return torch.nn.functional.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=align)

    with torch.no_grad():
        torch.testing.assert_close(tenon.compile(fn)(image, grid), fn(image, grid), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("shape, places", [((1, 1, 8, 8), (1, 4, 4, 2)), ((1, 1, 4, 4, 4), (1, 2, 2, 2, 3)), ((1, 1, 8, 1), (1, 4, 4, 2))], ids=["image", "volume", "line"])
def test_places_that_are_no_numbers(shape, places, mode, padding, dtype):
    torch.manual_seed(0)
    x, at = torch.rand(shape, dtype=dtype), torch.rand(places, dtype=dtype) * 3 - 1.5
    at.view(-1)[::3] = float("nan")
    for aligned in (False, True):
        fn = lambda x, at: F.grid_sample(x, at, mode, padding, aligned)  # noqa: E731
        torch.testing.assert_close(tenon.compile(fn)(x, at), fn(x, at), equal_nan=True)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_a_whole_factor_of_sizes_that_vary(mode):
    tenon.reset()
    fn = lambda x: F.interpolate(x, scale_factor=2, mode=mode)  # noqa: E731
    compiled = tenon.compile(fn)
    for size in (5, 8, 13, 7, 9, 11):
        x = torch.rand(1, 2, size, size + 1)
        torch.testing.assert_close(compiled(x), fn(x))
    assert tenon.stats()["graphs"] <= 3 and tenon.stats()["graph_breaks"] == 0
