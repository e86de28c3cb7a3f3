"""Handles of hooks that a call makes: their numbers go on from call to call."""
import subprocess
import sys

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


def steps():
    """Whole steps that put hooks on what is older than the call, and take them off again; each is given a network and its input."""

    def of_a_leaf(net, x, log):
        handle = net[0].weight.register_hook(lambda gradient: gradient * 3)
        net(x).sum().backward()
        handle.remove()
        return len(net[0].weight._backward_hooks)

    def of_all_leaves(net, x, log):
        handles = [p.register_hook(lambda gradient, k=k: gradient * (k + 1)) for k, p in enumerate(net.parameters())]
        net(x).pow(2).sum().backward()
        for handle in handles:
            handle.remove()

    def in_turn(net, x, log):
        bias = net[0].bias
        first, second = bias.register_hook(lambda gradient: log.append("first")), bias.register_hook(lambda gradient: log.append("second"))
        net(x).sum().backward()
        first.remove()
        net(x).sum().backward()
        second.remove()
        return list(bias._backward_hooks)

    def by_with(net, x, log):
        with net[2].bias.register_hook(lambda gradient: gradient + 1):
            net(x).sum().backward()

    def asked_for(net, x, log):
        handle = net[0].weight.register_hook(lambda gradient: gradient * 3)
        (gradient,) = torch.autograd.grad(net(x).sum(), [net[0].weight])
        handle.remove()
        return gradient, handle.id

    def when_accumulated(net, x, log):
        def step(p):
            with torch.no_grad():
                p.sub_(p.grad, alpha=0.1)
            p.grad = None

        handles = [p.register_post_accumulate_grad_hook(step) for p in net.parameters()]
        net(x).pow(2).sum().backward()
        for handle in handles:
            handle.remove()

    def of_a_module(net, x, log):
        handle = net[2].register_full_backward_hook(lambda module, incoming, outgoing: (incoming[0] * 2,))
        net(x).sum().backward()
        handle.remove()

    def of_all_modules(net, x, log):
        handles = [layer.register_full_backward_hook(lambda module, incoming, outgoing: log.append(type(module).__name__)) for layer in list(net)[1:]]
        handles.append(net[2].register_full_backward_pre_hook(lambda module, outgoing: log.append("before")))
        net(x).sum().backward()
        for handle in handles:
            handle.remove()

    return [of_a_leaf, of_all_leaves, in_turn, by_with, asked_for, when_accumulated, of_a_module, of_all_modules]


def rounds(step, calls):
    """What each of some calls gives and leaves."""
    from torch.utils.hooks import RemovableHandle

    torch.manual_seed(0)
    net, x, log, seen = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)), torch.randn(2, 3), [], []
    first = RemovableHandle.next_id
    for _ in range(calls):
        given = step(net, x, log)
        hooks = [[len(held or ()) for held in (p._backward_hooks, p._post_accumulate_grad_hooks)] for p in net.parameters()]
        hooks += [[len(layer._backward_hooks), len(layer._backward_pre_hooks)] for layer in net]
        tensors = [t.detach().clone() for p in net.parameters() for t in (p, p.grad) if t is not None]
        if isinstance(given, tuple):
            tensors.append(given[0])
            given = given[1] - first
        seen.append((given, hooks, list(log), RemovableHandle.next_id - first, tensors))
    return seen


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.__name__)
def test_hooks_of_older_tensors_and_modules(step):
    """Put on and taken off in each call: as without a compiler, and nothing is compiled anew."""
    rounds(step, 1)  # torch makes handles, too, when parts of it are imported
    expected = rounds(step, 20)
    tenon.reset()
    for found, plain in zip(rounds(tenon.compile(step), 20), expected):
        assert found[:4] == plain[:4]
        torch.testing.assert_close(found[4], plain[4])
    stats = tenon.stats()
    assert stats["graphs"] <= 3 and stats["eager_fallbacks"] == 0, stats


def test_hooks_that_stay():
    """They are called by torch's engine, too, and their handles take them off."""
    weight = torch.ones(3, requires_grad=True)

    def adds(tensor):
        tensor.grad.add_(1)

    @tenon.compile
    def put(x):
        handle = weight.register_hook(lambda gradient: gradient * 2)
        after = weight.register_post_accumulate_grad_hook(adds)
        return x + 1, handle, after

    _, handle, after = put(torch.ones(3))
    (weight * 5).sum().backward()
    assert weight.grad.tolist() == [11.0] * 3
    handle.remove(), after.remove()
    weight.grad = None
    (weight * 5).sum().backward()
    assert weight.grad.tolist() == [5.0] * 3


def test_numbers_of_handles_are_those_of_the_program():
    """What Tenon looks into when it starts makes handles, and takes none of the program's numbers."""
    program = """
import torch, tenon
from torch.utils.hooks import RemovableHandle
weight, handles = torch.nn.Parameter(torch.ones(2)), RemovableHandle.next_id
torch.ones(1, requires_grad=True).sum().backward()
handles = RemovableHandle.next_id
tenon.compile(lambda x: (x * weight).sum().backward())(torch.ones(2))
tenon.compile(lambda x: x * weight)(torch.ones(2)).sum().backward()
assert RemovableHandle.next_id == handles, (handles, RemovableHandle.next_id)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_left_of_hooks_is_no_hook():
    """A leaf keeps the dict of hooks that were taken off: hooks of modules are in the graph as before."""
    layer, x = nn.Linear(3, 3), torch.ones(2, 3)
    layer.weight.register_hook(lambda gradient: gradient).remove()
    layer.weight.register_post_accumulate_grad_hook(lambda weight: None).remove()

    def step():
        handle = layer.register_full_backward_pre_hook(lambda module, outgoing: (outgoing[0] * 2,))
        (gradient,) = torch.autograd.grad(layer(x).sum(), [layer.weight])
        handle.remove()
        return gradient

    expected, compiled = step(), tenon.compile(step)
    tenon.reset()
    for _ in range(10):
        torch.testing.assert_close(compiled(), expected)
    stats = tenon.stats()
    assert stats["graphs"] <= 3 and stats["graph_breaks"] == 0, stats
