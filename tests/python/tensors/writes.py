"""Compares compiled with plain execution of functions that write into their arguments."""
from __future__ import annotations

import copy

import numpy as np

import tenon

try:
    import torch
except ImportError:
    torch = None


class Forward:
    """A backend that runs its graph unoptimised, and says how many it was given."""

    __name__ = "forward"

    def __init__(self):
        self.count = 0

    def __call__(self, graph, example_inputs):
        self.count += 1
        return graph.forward


def tensors_in(structure):
    """The tensors and arrays of a nested structure, in order."""
    if isinstance(structure, (list, tuple)):
        return [each for part in structure for each in tensors_in(part)]
    if isinstance(structure, dict):
        return [each for part in structure.values() for each in tensors_in(part)]
    return [structure] if isinstance(structure, np.ndarray) or torch and isinstance(structure, torch.Tensor) else []


def places(tensors):
    """Which of the tensors are one object or share memory, and where each begins relative to those it shares memory with."""
    found = []
    for i, a in enumerate(tensors):
        for b in tensors[:i]:
            if isinstance(a, np.ndarray) != isinstance(b, np.ndarray):
                array, tensor = (a, b) if isinstance(a, np.ndarray) else (b, a)
                start = array.__array_interface__["data"][0]
                shared = tensor.dtype != torch.bfloat16 and np.shares_memory(array, tensor.detach().numpy())
                distance = start - tensor.data_ptr()
            elif isinstance(a, np.ndarray):
                shared = np.shares_memory(a, b)
                distance = a.__array_interface__["data"][0] - b.__array_interface__["data"][0]
            else:
                shared = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() and a.numel() > 0 and b.numel() > 0
                distance = a.data_ptr() - b.data_ptr()
            found.append((a is b, shared, distance if shared else None))
    return found


def versions(tensors):
    return [None if isinstance(t, np.ndarray) or t.is_inference() else t._version for t in tensors]


def compare(same, got, want, got_arguments, want_arguments):
    """Results, arguments, aliasing among all of them, and torch's version counters."""
    same(got, want)
    same(got_arguments, want_arguments)
    mine, theirs = tensors_in([got_arguments, got]), tensors_in([want_arguments, want])
    assert places(mine) == places(theirs)
    assert versions(mine) == versions(theirs)


def check_writes(same, fn, make, *, calls=3, fallbacks=0, graphs=None):
    """Calls `fn` on what `make()` gives, several times on the same arguments, by both kinds of backend and plainly."""
    forward = Forward()
    for options in ({}, {"backend": forward}):
        tenon.reset()
        compiled = tenon.compile(fn, **options)
        given, plain = make(), make()
        for _ in range(calls):
            want = fn(*plain)
            compare(same, compiled(*given), want, given, plain)
        if fallbacks is not None:
            assert tenon.stats()["eager_fallbacks"] == fallbacks, tenon.stats()
        if graphs is not None:
            assert tenon.stats()["graphs"] == graphs, tenon.stats()


def copies(*arguments):
    """A maker of fresh copies."""
    return lambda: copy.deepcopy(arguments)
