"""``torch.utils.checkpoint.checkpoint`` as a capture follows it: a graph keeps what it needs, so that only what a part of the program *does* is done again.

torch evaluates such a part once more when gradients are computed, with the random numbers of the first time. Of one that only computes nobody sees that.
"""
from __future__ import annotations

import functools
from typing import Any

import torch
from torch.utils.checkpoint import create_selective_checkpoint_contexts, noop_context_fn

from tenon._hooks import track_hooks


def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """The results, in the graph as if it were no such part. ``NotImplemented`` where torch would warn, refuse, or do something else again."""
    preserved = kwargs.pop("preserve_rng_state", True)
    if type(use_reentrant) is not bool or debug or torch.utils.checkpoint._checkpoint_debug_enabled or determinism_check not in ("default", "none"):
        return NotImplemented
    if not _only_chooses_what_to_keep(context_fn) or (use_reentrant and (kwargs or context_fn is not noop_context_fn)):
        return NotImplemented
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    tracked = torch.is_grad_enabled()
    if use_reentrant and tracked and not _any_requires_grad(tensors):
        return NotImplemented
    result, place, changes_objects, writes, writes_given, kept_since, draws, draws_elsewhere, has_functions = evaluate_region(function, args, kwargs, tensors)
    results = result if type(result) is tuple else (result,)
    if use_reentrant and not _are_of_a_function(results, tensors, tracked):
        return NotImplemented
    if not tracked:
        return result
    if (changes_objects or writes) and [t for t in tensors if not t.is_cpu and torch.is_autocast_enabled(t.device.type)]:
        return NotImplemented
    if draws_elsewhere or (draws and not preserved) or (draws and changes_objects):
        return NotImplemented
    outputs = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
    if changes_objects or writes:
        if writes_given or not outputs or (not use_reentrant and (changes_objects or has_functions or not kept_since or not early_stop)):
            return NotImplemented
        track_hooks(Repeated(function, args, kwargs, place, use_reentrant), outputs)
    if use_reentrant and not let_through_to_all_leaves(outputs):
        return NotImplemented
    return result


class Repeated:
    """What walks ask that come to the results of a part which writes to older tensors: the gradients are as they are, what it does is done again."""

    def __init__(self, function: Any, args: tuple, kwargs: dict, place: tuple, reentrant: bool) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.place = place
        self.reentrant = reentrant
        self.autocast = {"enabled": torch.is_autocast_enabled("cpu"), "dtype": torch.get_autocast_dtype("cpu")}

    def gradients(self, given: list, create_graph: bool) -> Any:
        if create_graph and self.reentrant:
            return None
        with torch.enable_grad(), torch.autocast("cpu", **self.autocast):
            evaluate_again(self.function, self.args, self.kwargs, self.place)
        return given


def _only_chooses_what_to_keep(context_fn: Any) -> bool:
    """Whether the contexts of a part say no more than what torch keeps of it."""
    return context_fn is noop_context_fn or (type(context_fn) is functools.partial and context_fn.func is create_selective_checkpoint_contexts)


def _any_requires_grad(tensors: list) -> bool:
    for tensor in tensors:
        if tensor.requires_grad:
            return True
    return False


def _are_of_a_function(results: tuple, tensors: list, tracked: bool) -> bool:
    """Whether a ``torch.autograd.Function`` would give these as they are: tensors of its own, of which each has a gradient that can have one."""
    for result in results:
        if isinstance(result, (list, dict)):
            return False
        if not isinstance(result, torch.Tensor):
            continue
        if tracked and result.is_floating_point() and not result.requires_grad:
            return False
        for tensor in tensors:
            if result is tensor:
                return False
    return True


def evaluate_region(function: Any, args: tuple, kwargs: dict, tensors: list) -> tuple:
    """What a function gives; the place where it began; whether it has changed older objects, older tensors, and some of these tensors; whether torch kept
    something for gradients at the last of these writes or after it; whether it took random numbers, and some that are not torch's; whether it has parts of
    which the program says how gradients flow through them.

    A capture answers that; nobody else calls it.
    """
    raise NotImplementedError


def evaluate_again(function: Any, args: tuple, kwargs: dict, place: tuple) -> None:
    """Does what a function did from that place on, with the same random numbers.

    A capture does that; nobody else calls it.
    """
    raise NotImplementedError


def let_through_to_all_leaves(tensors: list) -> bool:
    """Has walks that come to tensors go on only if they add to the ``.grad`` of all leaves; whether these have no hooks.

    A capture answers that; nobody else calls it.
    """
    raise NotImplementedError
