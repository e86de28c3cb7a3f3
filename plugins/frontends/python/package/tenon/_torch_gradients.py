"""Calls of which only torch knows the gradient, in a graph: torch makes the call with its own history, which is asked where gradients are computed.

A capture follows ``call``; ``NotImplemented`` is for calls that it leaves to the recorder.
"""
from __future__ import annotations

from typing import Any

import torch

from tenon._hooks import functions_may_leave, track_function, track_leaving
from tenon._kept_runs import gradients_again, gradients_of_run, tensors_in


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The results of a function of torch, with its gradients."""
    operands = tensors_in([*args, *kwargs.values()], [])
    for tensor in operands:
        if not tensor.is_floating_point() and tensor.requires_grad:
            return NotImplemented
    outlook = outlook_on(function, args, kwargs)
    if outlook is None or True not in outlook[2]:
        return NotImplemented
    differentiable, kept, reached = outlook
    with torch.no_grad():
        keep_next_run(function, tuple([tensor.requires_grad for tensor in operands]), kept)
        result = function(*args, **kwargs)
        run = kept_run()
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != len(differentiable):
        return NotImplemented
    for one, tracked in zip(results, differentiable):
        if not isinstance(one, torch.Tensor) or (tracked and not one.is_floating_point()):
            return NotImplemented
    inputs = [tensor for tensor in operands if tensor.requires_grad]
    outputs = [one for one, tracked in zip(results, differentiable) if tracked]
    saved = [(operands + results)[number] for number in kept]
    _apply(Called(run, inputs, saved, differentiable, reached), inputs, outputs, saved, False)
    return result


def _apply(called: Any, inputs: list, outputs: list, saved: list, once: bool) -> None:
    if functions_may_leave():
        track_leaving(called, inputs, outputs, saved, True, once, "left_out")
    else:
        track_function(called, inputs, outputs, saved)


class Called:
    """Such a call, and how gradients flow through it."""

    cls = None  # no code of the program's computes them

    def __init__(self, run: Any, inputs: list, saved: list, differentiable: tuple, reached: tuple) -> None:
        self.run = run
        self.inputs = inputs
        self.saved = saved
        self.differentiable = differentiable
        self.reached = reached
        self.is_last = False  # whether this graph asks for the gradients once more, at most

    def gradients(self, given: list, create_graph: bool) -> Any:
        left = list(given)
        of_results = [left.pop(0) if tracked else None for tracked in self.differentiable]
        inputs = [tensor for tensor, reached in zip(self.inputs, self.reached) if reached]
        args = (self.run, self.saved, of_results, self.reached)
        if create_graph:
            *found, again = gradient_call(gradients_again, args, inputs, True)
            tangents = [gradient for gradient in given if gradient is not None]
            reached = self.reached + tuple([tangent.requires_grad for tangent in tangents])
            inputs = inputs + [tangent for tangent in tangents if tangent.requires_grad]
            _apply(Again(again, inputs, self.saved, reached), inputs, found, self.saved, True)
        else:
            found = gradient_call(gradients_of_run, args + (self.is_last,), inputs, False)
        found = list(found)
        return [found.pop(0) if reached else None for reached in self.reached]


class Again:
    """The gradients of a call, and how gradients flow through them: to the operands of the call, and to the gradients that were given."""

    cls = None

    def __init__(self, run: Any, inputs: list, saved: list, reached: tuple) -> None:
        self.run = run
        self.inputs = inputs
        self.saved = saved
        self.reached = reached
        self.is_last = False

    def gradients(self, given: list, create_graph: bool) -> Any:
        if create_graph:
            return None
        return gradient_call(gradients_of_run, (self.run, self.saved, given, self.reached, self.is_last), self.inputs, False)


def outlook_on(function: Any, args: tuple, kwargs: dict) -> Any:
    """What :func:`tenon._kept_runs.outlook` says of a call; None where it cannot.

    A capture answers that; nobody else calls it.
    """
    raise NotImplementedError


def keep_next_run(function: Any, wanted: tuple, kept: tuple) -> None:
    """Has a :class:`tenon._kept_runs.Keeper` make the next call in the graph.

    A capture notes that; nobody else calls it.
    """
    raise NotImplementedError


def kept_run() -> torch.Tensor:
    """The number of the run of that call.

    A capture answers that; nobody else calls it.
    """
    raise NotImplementedError


def gradient_call(function: Any, args: tuple, of: list, keeps: bool) -> Any:
    """The gradients of some tensors, which a call of a function gives; `keeps`: and the number of its run.

    A capture records that; nobody else calls it.
    """
    raise NotImplementedError
