"""Normalisations that train: results, running statistics and their versions as in eager execution, without a break."""
from __future__ import annotations

import copy

import pytest

import tenon

torch = pytest.importorskip("torch")
nn = torch.nn


def tensor(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 2 + 1


def check(module, *inputs, calls=3, breaks=0):
    module = copy.deepcopy(module).train()
    twin = copy.deepcopy(module)
    compiled = tenon.compile(twin)
    with torch.no_grad():
        for _ in range(calls):
            for x in inputs:
                torch.testing.assert_close(compiled(x.clone()), module(x.clone()), rtol=1e-4, atol=1e-5)
                torch.testing.assert_close(dict(twin.named_buffers()), dict(module.named_buffers()), rtol=1e-5, atol=1e-6)
                assert [b._version for b in twin.buffers()] == [b._version for b in module.buffers()]
    assert tenon.stats()["graph_breaks"] == breaks and tenon.stats()["eager_fallbacks"] == breaks


@pytest.mark.parametrize("options", [{}, {"momentum": 0.3}, {"affine": False}, {"track_running_stats": False}, {"eps": 0.1}])
@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 3), (2, 4, 3, 5), (2, 4, 3, 2, 3)])
def test_batch_norm(shape, options):
    kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[len(shape)]
    check(kind(4, **options), tensor(*shape), tensor(*shape, seed=1))


def test_cumulative_averages():
    check(nn.BatchNorm1d(4, momentum=None), tensor(6, 4), tensor(6, 4, seed=1))


def test_a_division_by_a_number_of_the_graph_raises_at_zero():
    fn = tenon.compile(lambda x: 1.0 / float(x.sum()) * x)
    x = tensor(4)
    for _ in range(2):
        torch.testing.assert_close(fn(x), 1.0 / float(x.sum()) * x)
        with pytest.raises(ZeroDivisionError):
            fn(x * 0)
    assert tenon.stats()["graph_breaks"] == 0


def test_batches_of_varying_size():
    check(nn.BatchNorm2d(3), *[tensor(n, 3, 4, 4, seed=n) for n in (2, 3, 5, 7)])


def test_channels_last():
    check(nn.BatchNorm2d(3), tensor(2, 3, 4, 5).to(memory_format=torch.channels_last))


def test_double_precision():
    check(nn.BatchNorm1d(4).double(), tensor(5, 4).double())


@pytest.mark.parametrize("options", [{"track_running_stats": True}, {"track_running_stats": True, "affine": True, "momentum": 0.4}, {"affine": True}])
@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 4, 5, 2)])
def test_instance_norm(shape, options):
    kind = {3: nn.InstanceNorm1d, 4: nn.InstanceNorm2d}[len(shape)]
    check(kind(4, **options), tensor(*shape), tensor(*shape, seed=1))


def test_one_module_twice_in_a_call():
    norm = nn.BatchNorm1d(4)
    check(nn.Sequential(norm, nn.ReLU(), norm), tensor(6, 4))


def test_training_then_evaluation():
    norm, x = nn.BatchNorm1d(4), tensor(6, 4)
    twin = copy.deepcopy(norm)
    compiled = tenon.compile(twin)
    with torch.no_grad():
        for training in (True, False, True):
            torch.testing.assert_close(compiled.train(training)(x), norm.train(training)(x))
            torch.testing.assert_close(twin.running_var, norm.running_var)
    assert tenon.stats()["graph_breaks"] == 0


def test_a_statistic_that_is_also_the_weight():
    def fn(x, m, v):
        return torch.nn.functional.batch_norm(x, m, v, m, None, True)

    x, ours, theirs = tensor(6, 4), [tensor(4, seed=1), torch.ones(4)], [tensor(4, seed=1), torch.ones(4)]
    compiled = tenon.compile(fn)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x, *ours), fn(x, *theirs))
    torch.testing.assert_close(ours, theirs)
    assert tenon.stats()["graph_breaks"] == 1


def test_a_batch_of_one_value_is_an_error():
    norm = tenon.compile(nn.BatchNorm1d(4))
    with torch.no_grad(), pytest.raises(ValueError, match="more than 1 value per channel"):
        norm(tensor(1, 4))


@pytest.mark.parametrize("dynamic", [True, None])
def test_one_value_is_an_error_also_where_sizes_vary(dynamic):
    norm = tenon.compile(nn.Sequential(nn.Conv1d(4, 4, 3), nn.BatchNorm1d(4)), dynamic=dynamic)
    with torch.no_grad():
        for batch, length in [(5, 9), (7, 8), (1, 4)]:
            assert norm(tensor(batch, 4, length)).shape == (batch, 4, length - 2)
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            norm(tensor(1, 4, 3))


def test_resnet_block_trains_whole():
    torch.manual_seed(0)
    check(nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4)), tensor(2, 3, 8, 8), calls=2)


@pytest.mark.parametrize(("mean", "deviation"), [(0, 1), (1e3, 1), (-1e4, 0.5), (1e-3, 1e-6), (3e4, 0), (1e18, 1e17)])
def test_statistics_are_as_accurate_as_eager_ones(mean, deviation):
    x = tensor(8, 6, 20, 30) * deviation + mean
    norm, judge = nn.BatchNorm2d(6, momentum=1.0), nn.BatchNorm2d(6, momentum=1.0).double()
    twin = copy.deepcopy(norm)
    with torch.no_grad():
        results = [tenon.compile(twin)(x), norm(x), judge(x.double())]
    for ours, eager, exact in [results, *zip(*(list(n.buffers())[:2] for n in (twin, norm, judge)))]:
        bound = max(2 * float((eager - exact).abs().max()), 4 * torch.finfo(torch.float32).eps * float(exact.abs().max()))
        assert float((ours - exact).abs().max()) <= bound
