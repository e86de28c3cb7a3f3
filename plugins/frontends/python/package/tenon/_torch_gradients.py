"""Calls of which only torch knows the gradient, in a graph: the call is made without history, and where a walk comes to it torch makes it once more.

A capture follows ``call``; ``NotImplemented`` is for calls that it leaves to the recorder.
"""
from __future__ import annotations

from typing import Any

import torch

from tenon._hooks import track_function


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The results of a function of torch, which may be differentiated once."""
    operands = _tensors_in([*args, *kwargs.values()], [])
    for tensor in operands:
        if not tensor.is_floating_point() and tensor.requires_grad:
            return NotImplemented
    differentiable = differentiable_results(function, args, kwargs)
    if differentiable is None or True not in differentiable:
        return NotImplemented
    with torch.no_grad():
        result = function(*args, **kwargs)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != len(differentiable):
        return NotImplemented
    for one, tracked in zip(results, differentiable):
        if not isinstance(one, torch.Tensor) or (tracked and not one.is_floating_point()):
            return NotImplemented
    inputs = [tensor for tensor in operands if tensor.requires_grad]
    outputs = [one for one, tracked in zip(results, differentiable) if tracked]
    track_function(Called(function, args, kwargs, operands, differentiable), inputs, outputs, [*operands, *results])
    return result


class Called:
    """Such a call, and how gradients flow through it."""

    def __init__(self, function: Any, args: tuple, kwargs: dict, operands: list, differentiable: tuple) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.wanted = [tensor.requires_grad for tensor in operands]
        self.differentiable = differentiable

    def gradients(self, given: list, create_graph: bool) -> Any:
        if create_graph:
            return None
        left = list(given)
        of_results = [left.pop(0) if tracked else None for tracked in self.differentiable]
        with torch.no_grad():
            return list(gradients_by_torch(self.function, self.args, self.kwargs, self.wanted, of_results))


def _tensors_in(arguments: Any, found: list) -> list:
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            found.append(argument)
        elif isinstance(argument, (tuple, list)):
            _tensors_in(argument, found)
    return found


def differentiable_results(function: Any, args: tuple, kwargs: dict) -> Any:
    """Which of the results torch would differentiate; None where it cannot say.

    A capture answers that; nobody else calls it.
    """
    raise NotImplementedError


def gradients_by_torch(function: Any, args: tuple, kwargs: dict, wanted: list, given: list) -> tuple:
    """The gradients of a call by those of its tensors that are wanted. A graph makes this call as it is."""
    leaves: list[torch.Tensor] = []
    flags = iter(wanted)

    def fresh(argument: Any) -> Any:
        if isinstance(argument, torch.Tensor):
            argument = argument.detach()
            if next(flags):
                leaves.append(argument.requires_grad_())
            return argument
        return type(argument)([fresh(item) for item in argument]) if isinstance(argument, (tuple, list)) else argument

    with torch.enable_grad():
        result = function(*[fresh(a) for a in args], **{name: fresh(a) for name, a in kwargs.items()})
        results = result if isinstance(result, (tuple, list)) else (result,)
        pairs = [(r, g) for r, g in zip(results, given) if g is not None and r.requires_grad]
        found = torch.autograd.grad([r for r, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True)
    return tuple([torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, found)])


gradients_by_torch._tenon_in_graph = True  # type: ignore[attr-defined]  # the recorder looks for it
