"""What steps of training do to memory: gradients that are dropped serve the next ones, errors find what plain execution leaves, and nothing grows."""
import copy
import subprocess
import sys
import weakref

import pytest

import tenon
from tests.bench import level_memory

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 96, bias=False), nn.Tanh(), nn.Linear(96, 48, bias=False))


def trained(step_of, calls, compiled):
    """What `calls`, batches for a step, leave: errors by name, and where gradients are and what they hold."""
    net = network()
    step = step_of(net, torch.optim.SGD(net.parameters(), 0.1))
    if compiled:
        step = tenon.compile(step)
    told = []
    for x, y in calls:
        try:
            told.append(step(x, y))
        except Exception as error:
            told.append(type(error).__name__)
        told.append([None if p.grad is None else p.grad.clone() for p in net.parameters()])
        told.append([p.detach().clone() for p in net.parameters()])
    return told


def batches(*targets):
    return [(torch.randn(4, 64, generator=torch.Generator().manual_seed(seed)), torch.full((4,), t)) for seed, t in enumerate(targets)]


def same(got, want):
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want)
    elif isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    else:
        assert got == want


def zero_first(net, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def zero_of_module(net, optimizer):
    def step(x, y):
        net.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def zero_between(net, optimizer):
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def zero_by_hand(net, optimizer):
    def step(x, y):
        for p in net.parameters():
            p.grad = None
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def looks_first(net, optimizer):
    """Whether there was a gradient counts, also where the step is done again as plain Python."""
    def step(x, y):
        had = net[0].weight.grad is not None
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y) * (2 if had else 1)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def reads_first(net, optimizer):
    def step(x, y):
        norm = sum(p.grad.square().sum() for p in net.parameters() if p.grad is not None)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y) + norm
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def adds_up(net, optimizer):
    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


@pytest.mark.parametrize("step_of", [zero_first, zero_of_module, zero_between, zero_by_hand, looks_first, reads_first, adds_up])
def test_an_error_finds_the_gradients_as_plain_execution_leaves_them(step_of):
    calls = batches(3, 5, 7, 9, 48, 2, 3, -1, 4)  # there is no class 48, nor -1
    same(trained(step_of, calls, True), trained(step_of, calls, False))


@pytest.mark.parametrize("step_of", [zero_first, zero_of_module, zero_by_hand])
def test_a_gradient_lies_where_the_one_that_was_dropped_lay(step_of):
    net = network()
    step = tenon.compile(step_of(net, torch.optim.SGD(net.parameters(), 0.1)))
    places = []
    for x, y in batches(3, 5, 7, 9, 11):
        step(x, y)
        places.append([p.grad.data_ptr() for p in net.parameters()])
    assert places[-1] == places[-2] == places[-3]


def test_a_gradient_that_somebody_holds_stays():
    net = network()
    step = tenon.compile(zero_first(net, torch.optim.SGD(net.parameters(), 0.1)))
    held = []
    for x, y in batches(3, 5, 7, 9):
        step(x, y)
        held.append((net[0].weight.grad, net[0].weight.grad.clone()))
    for gradient, copied in held:
        assert torch.equal(gradient, copied)


STEPS_OF_ADAM = """
import torch
import tenon

net = torch.nn.Linear(512, 512)
optimizer = torch.optim.Adam(net.parameters())

@tenon.compile
def step(x):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()

for _ in range(4):
    step(torch.ones(4, 512))
assert tenon.stats()["graph_breaks"] == 0
print(tenon.stats()["host"]["pool"]["idle_bytes"] / net.weight.nbytes)
"""


def test_gradients_of_the_first_step_go_with_the_first_step():
    """Why the second step is captured anew is asked of the guards of the first, which look at its gradients."""
    net = network()

    def step(x):
        net.zero_grad()
        net(x).sum().backward()

    compiled, gradients = tenon.compile(step), []
    for _ in range(3):
        compiled(torch.ones(2, 64))
        gradients.append([weakref.ref(p.grad) for p in net.parameters()])
    assert [[g() is None for g in of_a_step] for of_a_step in gradients] == [[True, True], [True, True], [False, False]]


def test_parameters_and_states_are_written_where_they_lie():
    """In a process that has freed no other memory: none was taken to compute them beside that."""
    done = subprocess.run([sys.executable, "-c", STEPS_OF_ADAM], capture_output=True, text=True, timeout=120)
    assert float(done.stdout) < 1, done.stderr


@pytest.mark.parametrize("way", level_memory.WAYS)
def test_memory_is_level(way):
    """A slice of ``python -m tests.bench.level_memory``."""
    assert min(level_memory.growth_kilobytes(way, 100, 400) for _ in range(3)) <= 1024


def test_copies_of_a_network_train_apart():
    net = network()
    twin = copy.deepcopy(net)
    for n in (net, twin):
        step = tenon.compile(zero_first(n, torch.optim.SGD(n.parameters(), 0.1)))
        for x, y in batches(3, 5, 7):
            step(x, y)
    for p, q in zip(net.parameters(), twin.parameters()):
        assert torch.equal(p, q)
        assert torch.equal(p.grad, q.grad) and p.grad.data_ptr() != q.grad.data_ptr()
