"""Group and instance norm: errors against float64 like those of eager execution, in both memory formats, one by one and between others."""
from __future__ import annotations

import copy

import pytest

import tenon

torch = pytest.importorskip("torch")
nn = torch.nn


def tensor(*shape, last=False, offset=1.0):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))) * 2 + offset
    return x.to(memory_format=torch.channels_last) if last else x


def check(module, *inputs):
    """Compares with float64: at most twice as far from it as eager execution, or four units in the last place of the largest result."""
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.uniform_(parameter, 0.5, 1.5, generator)
    compiled = tenon.compile(copy.deepcopy(module))
    with torch.no_grad():
        for x in inputs:
            exact = copy.deepcopy(module).double()(x.double())
            eager, ours = module(x), compiled(x)
            error, allowed = (ours.double() - exact).abs().max(), (eager.double() - exact).abs().max()
            assert error <= max(2 * allowed, 4 * exact.abs().max() * 2**-23)
            assert ours.stride() == eager.stride() and ours.dtype == eager.dtype
    assert tenon.stats()["graph_breaks"] == tenon.stats()["eager_fallbacks"] == 0


@pytest.mark.parametrize("last", [False, True], ids=["channels_first", "channels_last"])
@pytest.mark.parametrize(
    ("groups", "shape"),
    [
        (1, (8, 48, 31, 33)),
        (4, (1, 72, 64, 96)),
        (4, (2, 36, 17, 19)),
        (32, (1, 256, 16, 16)),
        (32, (8, 320, 9, 7)),
        (24, (3, 24, 45, 40)),
        (3, (2, 6, 1, 1)),
    ],
)
def test_group_norm(groups, shape, last):
    check(nn.GroupNorm(groups, shape[1]), tensor(*shape, last=last))


@pytest.mark.parametrize("last", [False, True], ids=["channels_first", "channels_last"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options", [{}, {"affine": True}, {"affine": True, "track_running_stats": True}])
def test_instance_norm(options, training, last):
    for shape in [(2, 24, 33, 31), (1, 64, 64, 64), (8, 5, 3, 3)]:
        check(nn.InstanceNorm2d(shape[1], **options).train(training), tensor(*shape, last=last))


@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 9), (2, 6, 3, 4, 5)])
def test_other_ranks(shape):
    check(nn.GroupNorm(3, 6), tensor(*shape))


def test_one_value_a_group_is_an_error():
    with torch.no_grad(), pytest.raises(ValueError, match="more than 1 value per channel"):
        tenon.compile(nn.GroupNorm(5, 5))(tensor(1, 5))


def test_of_nothing():
    with torch.no_grad():
        assert tenon.compile(nn.GroupNorm(2, 4))(tensor(0, 4, 5, 5)).shape == (0, 4, 5, 5)


def test_without_weights_in_double_precision():
    x = tensor(2, 12, 20, 20, last=True).double()
    norm = nn.GroupNorm(3, 12, affine=False)
    with torch.no_grad():
        torch.testing.assert_close(tenon.compile(norm)(x), norm(x), rtol=1e-13, atol=1e-13)


def test_a_mean_far_from_zero():
    for last in (False, True):
        check(nn.GroupNorm(4, 32), tensor(2, 32, 40, 40, last=last, offset=1000.0))


def test_batches_of_varying_size():
    check(nn.GroupNorm(4, 16), *[tensor(n, 16, 33, 32 + n, last=True) for n in (1, 2, 5, 7)])


def test_of_concatenations_between_convolutions():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(16, 24, 3, padding=1), nn.Conv2d(24, 24, 3, padding=1)
            self.norm, self.last = nn.GroupNorm(4, 48), nn.Conv2d(48, 16, 3, padding=1)

        def forward(self, x):
            y = self.first(x)
            return self.last(torch.nn.functional.silu(self.norm(torch.cat([self.second(y), y], 1))))

    check(Net().eval(), tensor(2, 16, 37, 41))


def test_half_precision():
    x = tensor(2, 16, 24, 24, last=True).bfloat16()
    norm = nn.GroupNorm(4, 16).bfloat16()
    with torch.no_grad():
        exact = copy.deepcopy(norm).double()(x.double())
        error = (tenon.compile(norm)(x).double() - exact).abs().max()
    assert error <= exact.abs().max() * 2**-8


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_instances_of_half_floats(dtype):
    for last in (False, True):
        x = tensor(2, 3, 4, 5, last=last).to(dtype)
        check(nn.InstanceNorm2d(3), x), check(nn.InstanceNorm2d(3, affine=True).to(dtype), x)
    assert not tenon.stats()["opaque_nodes"]
