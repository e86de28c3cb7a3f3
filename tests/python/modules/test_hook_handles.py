"""Handles of hooks that a call makes: their numbers go on from call to call."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


def handles():
    torch.manual_seed(0)
    layer = nn.Linear(3, 3)
    x = torch.randn(2, 3)

    def forward():
        handle = layer.register_forward_hook(lambda module, given, result: result * 2)
        result = layer(x)
        handle.remove()
        return result.detach(), len(layer._forward_hooks)

    def before():
        with layer.register_forward_pre_hook(lambda module, given: (given[0] + 1,)):
            return layer(x).detach()

    def two():
        first = layer.register_forward_hook(lambda module, given, result: result * 2)
        second = layer.register_forward_hook(lambda module, given, kwargs, result: result + 2, prepend=True, with_kwargs=True, always_call=True)
        result = layer(x)
        first.remove(), second.remove()
        return result.detach()

    def of_a_result():
        y = layer(x)
        y.register_hook(lambda gradient: gradient * 3)
        return torch.autograd.grad(y.sum(), [layer.weight])[0]

    def everywhere():
        handle = nn.modules.module.register_module_forward_hook(lambda module, given, result: result + 1)
        result = layer(x)
        handle.remove()
        return result.detach()

    return [forward, before, two, of_a_result, everywhere]


@pytest.mark.parametrize("function", handles(), ids=lambda function: function.__name__)
def test_handles_made_in_each_call(function):
    """Their numbers are others at each call, which compiles nothing anew."""
    from torch.utils.hooks import RemovableHandle

    tenon.compile(function)()  # torch makes some, too, when parts of it are imported
    compiled = tenon.compile(function)
    before = RemovableHandle.next_id
    expected = function()
    made = RemovableHandle.next_id - before
    tenon.reset()
    for _ in range(20):
        before = RemovableHandle.next_id
        torch.testing.assert_close(compiled(), expected)
        assert RemovableHandle.next_id - before == made
    stats = tenon.stats()
    assert stats["graphs"] <= 3 and stats["eager_fallbacks"] == 0, stats
