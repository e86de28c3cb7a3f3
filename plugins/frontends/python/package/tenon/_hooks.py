"""Hooks of torch that are told of gradients, in a walk of a capture: it evaluates them as torch's engine calls them.

``NotImplemented``, and None for gradients, is for what torch refuses.
"""
from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle


def is_gradient(gradient: Any, tensor: torch.Tensor) -> bool:
    return isinstance(gradient, torch.Tensor) and gradient.shape == tensor.shape and gradient.dtype == tensor.dtype


class Hooks:
    """The hooks of a tensor that the graph computes, as torch calls them: a function that gives its argument, whose gradient they may change.

    What they leave becomes the ``.grad`` of a tensor that retains it.
    """

    def __init__(self) -> None:
        self.by_handle: dict = {}
        self.retaining: torch.Tensor | None = None

    def gradients(self, given: list, create_graph: bool) -> Any:
        changed = _changed(list(self.by_handle.values()), given[0], create_graph, False)
        if changed is None or (create_graph and self.retaining is not None):
            return None
        if self.retaining is not None:
            before = self.retaining.grad
            self.retaining.grad = changed.clone() if before is None else before + changed
        return [changed]


def _changed(hooks: list, gradient: torch.Tensor, create_graph: bool, may_write: bool) -> Any:
    """The gradient as hooks leave it; None where one gives what is none, or writes what may be another gradient's memory, or many elements in one."""
    for hook in hooks:
        version = gradient._version
        with torch.set_grad_enabled(create_graph):
            changed = hook(gradient)
        if gradient._version != version and not (may_write and all(stride > 0 for stride in gradient.stride())):
            return None
        if changed is None:
            continue
        if not is_gradient(changed, gradient):
            return None
        gradient = changed
    return gradient


def retain_grad(tensor: torch.Tensor) -> Any:
    """``torch.Tensor.retain_grad`` of what the graph computes."""
    hooks = track_hooks(Hooks(), [tensor], True)
    hooks.retaining = tensor
    return None


class HookHandle(RemovableHandle):
    """What takes a hook off again."""

    def __init__(self, hooks: Hooks, hook: Any) -> None:
        self.hooks = hooks
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        hooks.by_handle[self] = hook

    def remove(self) -> None:
        if self in self.hooks.by_handle:
            del self.hooks.by_handle[self]

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def register_hook(tensor: torch.Tensor, hook: Any) -> Any:
    """``torch.Tensor.register_hook`` of leaves, and of what the graph computes."""
    if not tensor.requires_grad:
        return NotImplemented
    if tensor.is_leaf:
        if tensor._backward_hooks is None:
            tensor._backward_hooks = OrderedDict()
        return _put(hook, tensor._backward_hooks)
    return HookHandle(track_hooks(Hooks(), [tensor], False), hook)


def register_hook_after(tensor: torch.Tensor, hook: Any) -> Any:
    """``torch.Tensor.register_post_accumulate_grad_hook``."""
    if not tensor.requires_grad or not tensor.is_leaf:
        return NotImplemented
    if tensor._post_accumulate_grad_hooks is None:
        tensor._post_accumulate_grad_hooks = OrderedDict()
    return _put(hook, tensor._post_accumulate_grad_hooks)


def _put(hook: Any, hooks: dict) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _as_torch_calls(hooks: dict) -> list:
    """The hooks of a leaf in the order in which they came: torch knows the dict alone, not the order of an OrderedDict."""
    return list(dict.values(hooks))


def has_hooks(leaf: torch.Tensor) -> bool:
    """Whether hooks are on a leaf now: of those that are taken off, dicts are left."""
    return bool(leaf._backward_hooks) or bool(leaf._post_accumulate_grad_hooks)


def of_leaf(leaf: torch.Tensor, gradient: torch.Tensor, create_graph: bool) -> Any:
    """The gradient of a leaf as the hooks on it leave it."""
    hooks = leaf._backward_hooks
    return gradient if hooks is None else _changed(_as_torch_calls(hooks), gradient, create_graph, True)


def on_accumulated(leaf: torch.Tensor) -> bool:
    """Calls what a leaf has of hooks for when its ``.grad`` is there. Whether torch has nothing against what they give."""
    hooks = leaf._post_accumulate_grad_hooks
    if hooks is not None:
        for hook in _as_torch_calls(hooks):
            if hook(leaf) is not None:
                return False
    return True


class ModuleNode:
    """The node of torch's that gives its arguments, before and behind a module with backward hooks: `torch.utils.hooks.BackwardHook` puts hooks on it."""

    def __init__(self, tensors: list, results: list) -> None:
        self.tensors = tensors
        self.results = results
        self.before: list = []
        self.after: list = []

    def register_prehook(self, hook: Any) -> None:
        self.before.append(hook)
        RemovableHandle.next_id += 1  # the handle that torch makes, and nobody takes

    def register_hook(self, hook: Any) -> None:
        self.after.append(hook)
        RemovableHandle.next_id += 1

    def gradients(self, given: list, create_graph: bool) -> Any:
        left = list(given)
        outgoing = tuple([left.pop(0) if tensor.requires_grad else None for tensor in self.tensors])
        with torch.set_grad_enabled(create_graph):
            for hook in self.before:
                changed = hook(outgoing)
                if changed is not None:
                    if type(changed) is not tuple or len(changed) != len(outgoing):
                        return None
                    outgoing = changed
            incoming = tuple([torch.zeros_like(t) if g is None else g for g, t in zip(outgoing, self.tensors)])
            for hook in self.after:
                changed = hook(incoming, outgoing)
                if changed is not None:
                    if type(changed) is not tuple or len(changed) != len(incoming):
                        return None
                    incoming = changed
        found = [g for g, t in zip(incoming, self.tensors) if t.requires_grad]
        for gradient, tensor in zip(found, [t for t in self.tensors if t.requires_grad]):
            if gradient is not None and not is_gradient(gradient, tensor):
                return None
        return found


def apply_on_tensors(backward_hook: Any, fn: Any, args: tuple) -> Any:
    """``torch.utils.hooks.BackwardHook._apply_on_tensors``: the arguments past a node that gives them, on which `fn` puts a hook; where the tensors are."""
    places = [at for at, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
    tensors = [args[at] for at in places]
    if not torch.is_grad_enabled() or not [t for t in tensors if t.requires_grad]:
        return args, None
    with torch.no_grad():
        results = [t.clone() for t in tensors]
    node = ModuleNode(tensors, results)
    wanting = [at for at in range(len(tensors)) if tensors[at].requires_grad]
    track_function(node, [tensors[at] for at in wanting], [results[at] for at in wanting], [], True)
    fn(node)
    passed = list(args)
    for place, result in zip(places, results):
        passed[place] = result
    return tuple(passed), places


def track_hooks(hooks: Any, tensors: list, retains: bool | None = None) -> Any:
    """Has walks of this graph that come to tensors ask `hooks.gradients`. With `retains`, False or True, these are the hooks of one tensor, or those that it
    has already are asked for them: gives these. True: it has a ``.grad`` from then on.

    A capture records that; nobody else calls it.
    """
    raise NotImplementedError


def track_function(applied: Any, inputs: list, outputs: list, saved: list, are_views: bool = False) -> None:
    """Makes outputs those of a function of inputs; `saved` is read to give its gradients. `are_views`: torch's are views, to which it refuses writes.

    A capture records that; nobody else calls it.
    """
    raise NotImplementedError


def functions_may_leave() -> bool:
    """Whether the results of a function that is applied now may leave the graph, with gradients to come.

    A capture answers that; nobody else calls it.
    """
    raise NotImplementedError


def track_leaving(applied: Any, inputs: list, outputs: list, kept: list, keeps: bool, once: bool, absent: str, own: Any = ()) -> None:
    """Makes outputs those of a function of inputs, with its gradients in the graph. `kept`: what these may be computed from. `keeps`: torch lets them be
    asked for once. `once`: they cannot be differentiated. `absent`: what torch makes of outputs without a
    gradient, gradients from ``"zeros"``, ``"none"``, or what is ``"unknown"``. `own`: attributes of the
    function's ctx that torch does not know of.

    A capture records that; nobody else calls it.
    """
    raise NotImplementedError


reading_what_changes: dict = {}
"""Functions whose ``backward`` has found something else than at the call: torch runs it."""


def refuse_gradients(functions: tuple, guard: str, found: str) -> None:
    """Raises, where gradients would go by what a ``backward`` found at the call, and finds no more. Later calls leave the functions to torch."""
    names = ", ".join(sorted({cls.__qualname__ for cls in functions}))
    reading_what_changes.update(dict.fromkeys(functions, True))
    raise RuntimeError(
        f"the backward of {names} reads what was changed after the compiled function was called: {guard} at the call, and now it is {found}. "
        "Call it again: from here on torch runs this backward. To have it compiled, let ctx keep what it reads"
    )


def refuse_written(functions: tuple, text: str) -> None:
    """Raises, where a tensor was written that a ``backward`` may read as an attribute of ``ctx``, as it is now. Later calls leave the functions to torch."""
    names = ", ".join(sorted({cls.__qualname__ for cls in functions}))
    reading_what_changes.update(dict.fromkeys(functions, True))
    raise RuntimeError(
        f"{text} Where it is an attribute of the ctx of {names}, torch reads what was written, and a compiled function has no version of it. "
        "Call it again: from here on torch runs this backward. To have it compiled, let ctx.save_for_backward keep the tensor"
    )


def way_back(applied: Any, given: list, again: bool) -> Any:
    """The gradients of the inputs of a function; None where torch is to say what is wrong."""
    try:
        return applied.gradients(given, again)
    except Exception:
        return None
