"""Convolutions and matrix products are as accurate as eager's: judged by float64, with eager's own error as the bound."""
import copy

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


def errors(program, *args):
    """The largest errors of the compiled program and of eager, and the bound: twice eager's, or 4 ulp of the result's scale."""
    with torch.no_grad():
        wide = [a.double() for a in args]
        judge = type(program).forward(program.double(), *wide) if isinstance(program, torch.nn.Module) else program(*wide)
        if isinstance(program, torch.nn.Module):
            program.float()
        ours, eager = tenon.compile(program)(*args), program(*args)
    scale = float(judge.abs().max())
    largest = [float((t.double() - judge).abs().max()) for t in (ours, eager)]
    return largest[0], max(2 * largest[1], 4 * np.finfo(np.float32).eps * scale)


@pytest.mark.parametrize("seed", range(24))
def test_random_convolutions(seed):
    draw = np.random.default_rng(seed)
    groups = int(draw.choice([1, 1, 1, 2]))
    channels, outputs = (int(draw.choice([1, 3, 8, 16, 40, 64, 130])) * groups for _ in range(2))
    kernel, stride, dilation = int(draw.choice([1, 3, 3, 5])), int(draw.integers(1, 3)), int(draw.integers(1, 3))
    reach = (kernel - 1) * dilation + 1
    torch.manual_seed(seed)
    x = torch.randn(int(draw.integers(1, 6)), channels, *(int(reach + draw.integers(0, 17)) for _ in range(2)))
    conv = torch.nn.Conv2d(channels, outputs, kernel, stride, int(draw.integers(0, kernel)), dilation, groups).eval()
    torch.nn.init.normal_(conv.weight)
    ours, bound = errors(conv, x)
    assert ours <= bound, f"seed {seed}: {tuple(x.shape)}, {conv}: {ours} > {bound}"


@pytest.mark.parametrize("seed", range(24))
def test_transformed_convolutions(seed):
    """3 x 3 taps at stride 1 over enough channels and pixels that the CPU backend transforms them."""
    draw = np.random.default_rng(1000 + seed)
    channels, outputs = (int(draw.integers(32, 49)) for _ in range(2))
    torch.manual_seed(seed)
    x = torch.randn(int(draw.integers(2, 5)), channels, *(int(draw.integers(8, 15)) for _ in range(2)))
    conv = torch.nn.Conv2d(channels, outputs, 3, padding=tuple(int(p) for p in draw.integers(0, 3, 2)), bias=bool(draw.integers(2))).eval()
    torch.nn.init.normal_(conv.weight)
    program = conv if draw.integers(2) else torch.nn.Sequential(conv, torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()).eval()
    if draw.integers(2):
        x = x.to(memory_format=torch.channels_last)
    ours, bound = errors(program, x)
    assert ours <= bound, f"seed {seed}: {tuple(x.shape)}, {program}: {ours} > {bound}"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("conv", [torch.nn.Conv1d(16, 16, 3, padding=1), torch.nn.Conv2d(32, 8, 3, padding=1), torch.nn.ConvTranspose2d(32, 32, 3, padding=1)])
def test_channels_last_convolutions_of_half_precision(conv, dtype):
    torch.manual_seed(0)
    conv = copy.deepcopy(conv).to(dtype)
    x = torch.randn(4, *(9,) * (conv.weight.dim() - 2), conv.in_channels).to(dtype).movedim(-1, 1)
    with torch.no_grad():
        torch.testing.assert_close(tenon.compile(conv)(x), conv(x), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_transformed_convolution_of_what_is_not_finite(value):
    torch.manual_seed(0)
    x, conv = torch.randn(2, 32, 9, 11), torch.nn.Conv2d(32, 33, 3, padding=1).eval()
    x[1, 7, 4, 5] = value
    with torch.no_grad():
        torch.testing.assert_close(tenon.compile(conv)(x), conv(x), equal_nan=True, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 4096, 64), (3, 1000, 33), (40, 5000, 70), (128, 2049, 130), (7, 300, 1)])
def test_long_sums(m, k, n):
    torch.manual_seed(m)
    ours, bound = errors(lambda a, b: a @ b, torch.randn(m, k), torch.randn(k, n))
    assert ours <= bound
    ours, bound = errors(lambda a, b: a @ b.t(), torch.randn(m, k), torch.randn(n, k))
    assert ours <= bound


class DenseBlock(torch.nn.Module):
    """Layers that read the concatenation of all before them; `channels` are not multiples of anything."""

    def __init__(self, draw):
        super().__init__()
        self.widths = [int(n) for n in draw.integers(1, 50, int(draw.integers(2, 6)))]
        self.kernels = [int(draw.choice([1, 3])) for _ in self.widths]
        self.norms, self.layers, channels = torch.nn.ModuleList(), torch.nn.ModuleList(), 16
        self.first = torch.nn.Conv2d(3, channels, 3, padding=1)
        for width, kernel in zip(self.widths, self.kernels):
            self.norms.append(torch.nn.BatchNorm2d(channels) if draw.integers(3) else torch.nn.Identity())
            self.layers.append(torch.nn.Conv2d(channels, width, kernel, padding=kernel // 2))
            channels += width
        self.last, self.pool = torch.nn.Conv2d(channels, 20, 3), bool(draw.integers(2))

    def forward(self, x):
        features = [torch.nn.functional.max_pool2d(torch.relu(self.first(x)), 2) if self.pool else self.first(x)]
        for norm, layer in zip(self.norms, self.layers):
            features.append(layer(torch.relu(norm(torch.cat(features, 1)))))
        return self.last(torch.cat(features, 1)), features[1].sum() + torch.cat(features[:2], 1).mean()


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_concatenations_are_written_in_place(seed, frozen, capfd):
    torch.manual_seed(seed)
    tenon.set_logs(fusion=True)
    net = DenseBlock(np.random.default_rng(seed)).eval()
    x = torch.randn(2, 3, 16, 20)
    with torch.no_grad():
        ours, eager = tenon.compile(net, options={"freeze": frozen})(x), net(x)
        for got, plain, judge in zip(ours, eager, net.double()(x.double())):
            bound = max(2 * float((plain - judge).abs().max()), 4 * np.finfo(np.float32).eps * float(judge.abs().max()))
            assert float((got - judge).abs().max()) <= bound, f"seed {seed}: {net}"
    assert "is written into" in capfd.readouterr().err


@pytest.mark.parametrize(("channels", "outputs", "size"), [(40, 70, 31), (64, 128, 32), (300, 33, 27), (48, 200, 40), (600, 1000, 20)])
def test_left_operands_are_computed_while_they_are_packed(channels, outputs, size, capfd):
    torch.manual_seed(channels)
    net = torch.nn.Sequential(torch.nn.BatchNorm2d(channels), torch.nn.ReLU(), torch.nn.Conv2d(channels, outputs, 1)).eval()
    torch.nn.init.uniform_(net[0].running_var, 0.5, 2)
    tenon.set_logs(fusion=True)
    ours, bound = errors(net, torch.randn(3, channels, size, size).to(memory_format=torch.channels_last))
    assert ours <= bound
    assert "computes its left operand while packing it" in capfd.readouterr().err


def large_pictures() -> torch.nn.Module:
    """A network over pictures of 96 x 96, with pooling and a linear layer."""
    conv = torch.nn.Conv2d
    return torch.nn.Sequential(conv(3, 16, 3, padding=1), torch.nn.ReLU(), conv(16, 64, 3, padding=1), torch.nn.AvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(64 * 48 * 48, 5)).eval()


@pytest.mark.parametrize("mode", [None, "max-autotune"])
def test_frozen_network_over_a_large_batch(mode):
    net, x = large_pictures(), torch.randn(16, 3, 96, 96)
    compiled = tenon.compile(net, mode=mode, options={"freeze": True})
    with torch.no_grad():
        for pictures in (x, x * 2, x.to(memory_format=torch.channels_last)):
            torch.testing.assert_close(compiled(pictures), net(pictures), rtol=1e-4, atol=1e-4)
    assert tenon.stats()["eager_fallbacks"] == 0


def test_direct_convolution_sums_in_the_order_of_onednn():
    conv, x = torch.nn.Conv2d(16, 24, 3, padding=1, bias=False).eval(), torch.randn(6, 16, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(tenon.compile(conv)(x), conv(x), rtol=1e-6, atol=1e-7)


def test_direct_convolution_over_small_pictures():
    torch.manual_seed(0)
    ours, bound = errors(torch.nn.Conv2d(16, 24, 3, padding=1).eval(), torch.randn(6, 16, 8, 8))
    assert ours <= bound
