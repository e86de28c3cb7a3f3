"""Strides of results where operands are channels last: what eager gives, and what later operations make of them."""
import pytest

import tenon

torch = pytest.importorskip("torch")
nn = torch.nn

LAYERS = {
    "conv": nn.Conv2d(8, 4, 3),
    "pointwise conv": nn.Conv2d(8, 4, 1),
    "depthwise conv": nn.Conv2d(8, 8, 3, groups=8),
    "dilated conv": nn.Conv2d(8, 4, 3, dilation=2, padding="same"),
    "transposed conv": nn.ConvTranspose2d(8, 4, 2, 2),
    "batch norm": nn.BatchNorm2d(8).eval(),
    "training batch norm": nn.BatchNorm2d(8),
    "group norm": nn.GroupNorm(2, 8),
    "instance norm": nn.InstanceNorm2d(8),
    "max pool": nn.MaxPool2d(2),
    "average pool": nn.AvgPool2d(3, 1, 1),
    "adaptive pool": nn.AdaptiveAvgPool2d(3),
    "nearest": nn.Upsample(scale_factor=2),
    "bilinear": nn.Upsample(scale_factor=2, mode="bilinear"),
    "prelu": nn.PReLU(),
    "zero padding": nn.ZeroPad2d(1),
    "circular padding by nothing": nn.CircularPad2d(0),
    "conv and norm": nn.Sequential(nn.Conv2d(8, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.GroupNorm(2, 4)).eval(),
}


def images(channels=8, height=6, width=5):
    return torch.randn(2, channels, height, width, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", LAYERS)
def test_channels_last_inputs(check, name):
    with torch.no_grad():
        check(LAYERS[name], (images().to(memory_format=torch.channels_last),), (images(),), (images()[:, :, ::2],))


def test_weights_decide_as_well(check):
    layer = nn.Conv2d(8, 4, 3).to(memory_format=torch.channels_last)
    with torch.no_grad():
        check(layer, (images(),), (images()[0],))


VOLUMES = {
    "two pictures": (nn.Conv3d(8, 4, 3, padding=1), 2),
    "one picture": (nn.Conv3d(8, 4, 3, padding=1), 1),
    "one large picture": (nn.Conv3d(8, 4, 3), 1),
    "one picture in groups": (nn.Conv3d(8, 4, 1, groups=4), 1),
    "one picture, large kernel": (nn.Conv3d(8, 4, 4), 1),
    "transposed": (nn.ConvTranspose3d(8, 4, 2, 2), 2),
    "transposed depthwise": (nn.ConvTranspose3d(8, 8, 2, 2, groups=8), 2),
    "transposed, padded behind": (nn.ConvTranspose3d(8, 4, 3, 1, output_padding=1, dilation=2), 2),
    "float64": (nn.Conv3d(8, 4, 3, dtype=torch.float64), 2),
}


@pytest.mark.parametrize("name", VOLUMES)
def test_volumes(check, name):
    layer, batch = VOLUMES[name]
    side = 40 if "one large" in name else 6
    x = torch.randn(batch, 8, side, side + 1, 5, dtype=layer.weight.dtype)
    with torch.no_grad():
        check(layer, (x.to(memory_format=torch.channels_last_3d),), (x,))
        check(lambda v: torch.relu(layer(v)) * 2, (x.to(memory_format=torch.channels_last_3d),))
    assert not tenon.stats()["opaque_nodes"]


def test_what_is_ambiguous(check):
    one = nn.Conv2d(1, 4, 3)
    with torch.no_grad():
        check(one, (images(1).to(memory_format=torch.channels_last),), (images(1),))
        check(nn.Conv2d(8, 4, 1), (images(8, 1, 1).to(memory_format=torch.channels_last),), (images(8, 1, 1),))


def test_channels_made_last_by_the_program(check):
    layer = nn.Conv2d(8, 4, 3)
    with torch.no_grad():
        check(lambda x: layer(torch.relu(x.permute(0, 2, 3, 1).contiguous()).permute(0, 3, 1, 2)), (images(),))


def test_masks(check):
    x = images()
    with torch.no_grad():
        check(lambda x: (x.masked_fill(x > 0, 0.0), x.masked_fill(x > 0, 0.0) + 1), (x.to(memory_format=torch.channels_last),), (x.transpose(1, 2),))


def test_one_dimension(check):
    layer = nn.Conv1d(8, 4, 3)
    x = images()[:, :, 0]
    with torch.no_grad():
        check(layer, (x,), (x.transpose(1, 2).contiguous().transpose(1, 2),))


def test_random_numbers_fill_memory_in_eager_order(check):
    layer = nn.Conv2d(8, 4, 3)

    def fn(x):
        return torch.nn.functional.dropout(layer(x), 0.5, True)

    x = images().to(memory_format=torch.channels_last)
    with torch.no_grad():
        torch.manual_seed(3)
        want = fn(x)
        torch.manual_seed(3)
        torch.testing.assert_close(tenon.compile(fn)(x), want)


FUNCTIONS = {
    "reflect": lambda x: nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replicate": lambda x: nn.functional.pad(x, (1, 1, 1, 1), mode="replicate"),
    "circular": lambda x: nn.functional.pad(x, (1, 1, 1, 1), mode="circular"),
    "zeros": lambda x: nn.functional.pad(x, (1, 1, 1, 1)),
    "pixel_shuffle": lambda x: nn.functional.pixel_shuffle(x.repeat(1, 4, 1, 1), 2),
    "pixel_unshuffle": lambda x: nn.functional.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x: nn.functional.channel_shuffle(x, x.shape[1]),
    "nearest": lambda x: nn.functional.interpolate(x, scale_factor=2),
    "bilinear": lambda x: nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "batch_norm": lambda x: nn.functional.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1])),
    "training batch_norm": lambda x: nn.functional.batch_norm(x, None, None, training=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_channel_and_odd_orders(check, name):
    one = images(1, 6, 4).to(memory_format=torch.channels_last)
    permuted = images(6, 2, 4).permute(2, 0, 3, 1).contiguous().permute(1, 3, 0, 2)
    with torch.no_grad():
        check(FUNCTIONS[name], (one,), (images(4, 6, 4).to(memory_format=torch.channels_last),), (permuted,), (images(4, 6, 4),))


ROW_MAJOR = {
    "softmax": lambda x: torch.softmax(x, 1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "layer_norm": lambda x: nn.functional.layer_norm(x, x.shape[-2:]),
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "std": lambda x: x.std(1),
    "cumsum": lambda x: torch.cumsum(x, 1),
    "gather": lambda x: torch.gather(x, 0, torch.zeros(x.shape, dtype=torch.long)),
    "index_select": lambda x: torch.index_select(x, 1, torch.tensor([1, 0])),
    "tril": torch.tril,
}


@pytest.mark.parametrize("name", ROW_MAJOR)
def test_results_that_are_row_major_whatever_the_operand(check, name):
    x = images()
    with torch.no_grad():
        check(ROW_MAJOR[name], (x.to(memory_format=torch.channels_last),), (x.permute(3, 1, 0, 2),), (x[:, ::2],), (x[:, :, :1].expand_as(x),))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.cat([x, x + 1], 1),
        lambda x: torch.cat([x.clone(), x], 1),
        lambda x: torch.stack([x, x + 1], 1),
        lambda x: torch.cat([torch.where(x > 0, x, 0.0), 1 - x], 1),
        lambda x: torch.cat([x**2, x.clamp(0, 1)], 1),
        lambda x: torch.cat([torch.flip(x, [2]), torch.zeros_like(x)], 1),
        lambda x: torch.roll(x, 1, 1),
        lambda x: torch.roll(x, (1, 4), (2, 3)),
        lambda x: torch.roll(x, 3, 2),
        lambda x: torch.nn.functional.pad(x, (0, 0)),
        lambda x: torch.nn.functional.pad(x, (-1, 0)),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_formats_that_dimensions_of_size_one_leave_open(check, fn, channels):
    x = torch.arange(32.0 * channels).reshape(2, channels, 4, 4)
    with torch.no_grad():
        check(fn, (x.to(memory_format=torch.channels_last),), (x,), (x.transpose(1, 3),))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("convolve", [nn.functional.conv1d, nn.functional.conv_transpose1d])
def test_formats_of_convolutions_over_one_dimension(check, convolve, channels):
    weight = torch.ones(6, channels, 3) if convolve is nn.functional.conv1d else torch.ones(channels, 6, 3)
    x = torch.randn(4, 10, channels)
    with torch.no_grad():
        check(lambda x: convolve(x.transpose(1, 2), weight), (x,), (x[:2],), (x[:, ::2],))
        check(lambda x: convolve((x * 2).transpose(1, 2).contiguous(), weight), (x,), (x[:, :1].expand(4, 3, channels),))


@pytest.mark.parametrize("name", ["conv", "max pool", "average pool", "batch norm"])
def test_strides_of_single_pixels_in_batches_that_vary(name):
    layer = {"conv": nn.Conv2d(8, 4, 2), "max pool": nn.MaxPool2d(2), "average pool": nn.AvgPool2d(2), "batch norm": nn.Sequential(nn.Conv2d(8, 4, 2), nn.BatchNorm2d(4))}[name].eval()
    compiled = tenon.compile(layer)
    with torch.no_grad():
        for batch in (1, 4, 8):
            x = torch.randn(batch, 8, 2, 2).to(memory_format=torch.channels_last)
            assert compiled(x).stride() == layer(x).stride()


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.isin(x, x.flatten()[:2]),
        lambda x: torch.nn.functional.one_hot(x % 5, 5),
        lambda x: torch.rsub(x, x.transpose(0, 1).contiguous().transpose(0, 1)),
        lambda x: torch.rsub(x.contiguous(), x),
    ],
)
def test_layouts_that_are_not_those_of_the_first_operand(check, fn):
    x = torch.arange(24).reshape(2, 3, 4)
    check(fn, (x,), (x.permute(2, 0, 1),), (x.transpose(1, 2),))


LINES = {
    "max_pool1d": lambda x: nn.functional.max_pool1d(x, 2),
    "max_pool1d, padded": lambda x: nn.functional.max_pool1d(x, 3, 2, 1, ceil_mode=True),
    "max_pool1d and places": lambda x: nn.functional.max_pool1d(x, 2, return_indices=True),
    "avg_pool1d": lambda x: nn.functional.avg_pool1d(x, 2),
    "adaptive_max_pool1d": lambda x: nn.functional.adaptive_max_pool1d(x, 2),
    "replicate by less": lambda x: nn.functional.pad(x, (-1, 1), mode="replicate"),
    "reflect by less": lambda x: nn.functional.pad(x, (1, -2), mode="reflect"),
    "circular by less": lambda x: nn.functional.pad(x, (-1, -1), mode="circular"),
    "rrelu": nn.functional.rrelu,
    "nan_to_num": torch.nan_to_num,
    "xlog1py": lambda x: torch.special.xlog1py(x, x[..., :1]),
    "xlog1py of a number": lambda x: torch.special.xlog1py(2, x),
    "native_dropout_backward": lambda x: torch.ops.aten.native_dropout_backward(x, x > 0.5, 2.0),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "prelu": lambda x: nn.functional.prelu(x, torch.tensor([0.25])),
    "heaviside": lambda x: torch.heaviside(x, torch.tensor(0.5)),
    "shifts": lambda x: (x.int() << 1, x.int() >> 1),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:1] + 1, 0, 0, 1),
    "var_mean": lambda x: torch.var_mean(x, -1),
}


def exactly_alike(fn, x):
    """Strides of dimensions of size 1 too."""
    torch.manual_seed(0)
    want = fn(x)
    torch.manual_seed(0)
    got = tenon.compile(fn)(x)
    for one, other in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
        assert one.stride() == other.stride(), (tuple(x.shape), x.stride())
        torch.testing.assert_close(one, other, equal_nan=True)


@pytest.mark.parametrize("name", LINES)
def test_lines_in_every_order(name):
    with torch.no_grad():
        for shape in ((2, 3, 6), (1, 3, 6), (2, 1, 6), (3, 6), (1, 6)):
            x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
            for laid_out in (x, x.mT.contiguous().mT, x.transpose(0, 1).contiguous().transpose(0, 1), x.repeat_interleave(2, -1)[..., ::2], x[..., :1].expand(shape)):
                exactly_alike(LINES[name], laid_out)


PRODUCTS = {
    "addbmm": lambda i, a, b: torch.addbmm(i, a, b),
    "addbmm, scaled": lambda i, a, b: i.addbmm(a, b, beta=2, alpha=3),
    "baddbmm": lambda i, a, b: torch.baddbmm(i, a, b),
    "addmm": lambda i, a, b: torch.addmm(i, a[0], b[0]),
    "addr": lambda i, a, b: torch.addr(i, a[0][:, 0], b[0][0]),
    "matmul": lambda i, a, b: a @ b,
    "folded": lambda i, a, b: a @ b[0],
    "linear": lambda i, a, b: nn.functional.linear(a, b[0].mT, i[0]),
    "einsum": lambda i, a, b: torch.einsum("bij,bjk->bki", a, b),
    "conv_transpose3d": lambda i, a, b: nn.functional.conv_transpose3d(a[None, :, :, None, :].expand(2, 2, 3, 2, 4), torch.ones(2, 2, 2, 1, 2)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_in_every_order(name):
    i, a, b = torch.rand(3, 5), torch.rand(2, 3, 4), torch.rand(2, 4, 5)
    with torch.no_grad():
        for turned in (lambda x: x, lambda x: x.mT.contiguous().mT, lambda x: x[..., :1].expand(x.shape)):
            exactly_alike(lambda x: PRODUCTS[name](turned(i), turned(a), x), turned(b))
            exactly_alike(lambda x: PRODUCTS[name](turned(i), a, x), b)


@pytest.mark.parametrize("function", [torch.argsort, torch.msort, lambda x: torch.nn.functional.prelu(x, torch.tensor([0.2]))], ids=["argsort", "msort", "prelu"])
@pytest.mark.parametrize("layout", [((5, 1), (1, 5)), ((2, 1, 3), (3, 7, 1)), ((2, 1, 3, 4), (12, 5, 4, 1)), ((1, 3, 4, 5), (60, 1, 15, 3))], ids=str)
def test_copies_keep_the_strides_of_dimensions_of_size_1(function, layout):
    x = torch.as_strided(torch.rand(80), *layout)
    with torch.no_grad():
        assert tenon.compile(function)(x).stride() == function(x).stride()


@pytest.mark.parametrize("function", [torch.zeros_like, torch.empty_like, torch.ones_like, torch.rand_like, torch.clone, torch.Tensor.contiguous, torch.Tensor.float, torch.Tensor.double],
                         ids=lambda f: f.__name__)
def test_the_format_that_is_kept_by_name(function):
    x = images()
    compiled = tenon.compile(lambda x, f: function(x, memory_format=f))
    for like in (x, x.to(memory_format=torch.channels_last), x.transpose(1, 3), x[:, ::2], x[:, :1], x[:1].expand(3, 8, 6, 5), x[:0]):
        for kept in (torch.preserve_format, torch.contiguous_format, torch.preserve_format):
            try:
                want = function(like, memory_format=kept)
            except RuntimeError as error:
                with pytest.raises(RuntimeError, match=str(error)[:40]):
                    compiled(like, kept)
                continue
            got = compiled(like, kept)
            assert (got.shape, got.stride(), got.dtype, got is like, got._version) == (want.shape, want.stride(), want.dtype, want is like, want._version)
