"""Calls and compiles give back what they take."""
import gc
import os
import sys
import weakref

import numpy as np
import pytest

import tenon


def resident_kilobytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def growth(action, warm, count, rounds=3):
    """What `count` calls leave behind, in KiB and in Python's blocks, in the round that leaves least.

    A leak shows in every round. One huge page (2 MiB) or the allocator's next arena shows in one.
    """
    for _ in range(warm):
        action()
    left = []
    for _ in range(rounds):
        gc.collect()
        before, blocks = resident_kilobytes(), sys.getallocatedblocks()
        for _ in range(count):
            action()
        gc.collect()
        left.append((resident_kilobytes() - before, sys.getallocatedblocks() - blocks))
    return min(kilobytes for kilobytes, _ in left), min(blocks for _, blocks in left)


def test_calls_do_not_grow():
    compiled, a = tenon.compile(lambda a: (np.sin(a) + 1, a.sum(), a.T)), np.ones((4, 4))
    kilobytes, blocks = growth(lambda: compiled(a), 2000, 20000)
    assert blocks < 100 and kilobytes < 2000


def test_arguments_are_released():
    compiled, a = tenon.compile(lambda a: (a, a.T, a + 1)), np.ones((2, 3))
    compiled(a)
    before = sys.getrefcount(a)
    for _ in range(100):
        compiled(a)
    assert sys.getrefcount(a) == before


def test_compiles_do_not_grow():
    a = np.ones(3)

    def once():
        tenon.reset()
        tenon.compile(lambda a: np.sin(a) * 2, backend="reference")(a)

    kilobytes, blocks = growth(once, 30, 150)
    assert blocks < 2000 and kilobytes < 8000


def test_eager_calls_do_not_grow():
    def fn(a):
        return a + 1 if a.sum() > 0 else a

    compiled, a = tenon.compile(fn), np.ones(3)
    kilobytes, blocks = growth(lambda: compiled(a), 500, 5000)
    assert blocks < 100 and kilobytes < 2000


def test_torch_calls_do_not_grow():
    torch = pytest.importorskip("torch")
    compiled, x = tenon.compile(lambda x: (x.sin() + 1, x.t(), x)), torch.ones(4, 4)
    kilobytes, blocks = growth(lambda: compiled(x), 2000, 20000)
    assert blocks < 100 and kilobytes < 2000
    before = sys.getrefcount(x)
    compiled(x)
    assert sys.getrefcount(x) == before


def test_what_a_call_has_read_may_go():
    import weakref

    torch = pytest.importorskip("torch")
    from collections import deque

    class Slotted:
        __slots__ = ("part",)

    parameter, holder, items = torch.nn.Parameter(torch.ones(3)), Slotted(), deque([torch.ones(3)])
    parameter.grad, holder.part = torch.ones(3), torch.ones(3)

    @torch.no_grad()
    def reads():
        parameter.add_(parameter.grad)
        return holder.part + items[0]

    compiled = tenon.compile(reads)
    compiled(), compiled()
    left = [weakref.ref(parameter.grad), weakref.ref(holder.part), weakref.ref(items[0])]
    parameter.grad = holder.part = None
    items.clear()
    assert [ref() for ref in left] == [None] * 3


def test_frozen_copies_of_what_was_written_go():
    torch = pytest.importorskip("torch")
    module, x = torch.nn.Linear(1024, 1024).requires_grad_(False), torch.ones(64, 1024)
    compiled = tenon.compile(module, options={"freeze": True})

    def write_and_call():
        module.weight.mul_(1.01)
        return compiled(x)

    kilobytes, _ = growth(write_and_call, 2, 10, rounds=1)
    assert tenon.stats()["recompiles"] >= 10
    assert kilobytes < 3 * 4096  # a copy of the weights is 4 MiB
    torch.testing.assert_close(write_and_call(), module(x))


def test_classes_of_compiled_modules_go():
    """With what their methods close over."""
    torch = pytest.importorskip("torch")

    def made():
        weight = torch.nn.Parameter(torch.randn(4, 4))

        class Scaled(torch.nn.Module):
            def forward(self, x):
                return weight * x

        compiled = tenon.compile(Scaled())
        compiled(torch.randn(4, 4))
        assert type(compiled) is type(tenon.compile(Scaled()))
        return weakref.ref(Scaled), weakref.ref(weight)

    left = made()
    tenon.reset()
    gc.collect()
    assert [each() for each in left] == [None, None]
