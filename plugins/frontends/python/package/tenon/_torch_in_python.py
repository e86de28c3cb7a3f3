"""What torch does in C, in Python: a capture follows it. ``NotImplemented`` is for what only the original does."""
from __future__ import annotations

from typing import Any

import torch


class Context:
    """What the ``forward`` of a function may do with its ``ctx``."""

    def __init__(self, args: tuple) -> None:
        self.needs_input_grad = tuple([isinstance(a, torch.Tensor) and a.requires_grad for a in args])
        self.to_save: tuple = ()
        self.saved_for_forward: tuple = ()
        self.dirty_tensors: tuple = ()
        self.non_differentiable: tuple = ()
        self.materialize_grads = True

    @property
    def saved_tensors(self) -> tuple:
        return self.to_save

    def save_for_backward(self, *tensors: Any) -> None:
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: torch.Tensor) -> None:
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: torch.Tensor) -> None:
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value


def apply_function(cls: type[torch.autograd.Function], *args: Any) -> Any:
    """``cls.apply(*args)`` where no gradient is wanted."""
    ctx = Context(args)
    if torch.is_grad_enabled() and True in ctx.needs_input_grad:
        return NotImplemented
    with torch.no_grad():
        if cls.setup_context is torch.autograd.Function.setup_context:
            outputs = cls.forward(ctx, *args)
        else:
            outputs = cls.forward(*args)
            cls.setup_context(ctx, args, outputs)
            if _saves_unchanged_input(outputs, args, ctx):
                return NotImplemented
        if type(outputs) is tuple:
            return tuple([_as_output(output, args, ctx) for output in outputs])
        return _as_output(outputs, args, ctx)


def _saves_unchanged_input(outputs: Any, args: tuple, ctx: Context) -> bool:
    """Whether an input that is given as it is has been saved for a derivative, which torch refuses in ``setup_context``."""
    for output in outputs if type(outputs) is tuple else (outputs,):
        if isinstance(output, torch.Tensor) and not output.requires_grad and _holds(args, output) and not _holds(ctx.dirty_tensors, output):
            if _holds(ctx.to_save, output) or _holds(ctx.saved_for_forward, output):
                return True
    return False


def _holds(tensors: tuple, wanted: torch.Tensor) -> bool:
    for tensor in tensors:
        if tensor is wanted:
            return True
    return False


def _as_output(output: Any, args: tuple, ctx: Context) -> Any:
    """An input that is given as it is becomes another tensor of the same memory, unless the function says that it has written it."""
    if not isinstance(output, torch.Tensor):
        return output
    if _holds(args, output) and not _holds(ctx.dirty_tensors, output):
        return output.detach() if output.requires_grad else output.view_as(output)
    return output


def group_tensors(tensorlistlist: list[list[Any]], with_indices: bool = False) -> Any:
    """``torch.utils._foreach_utils._group_tensors_by_device_and_dtype`` of tensors of one dtype: the order of several groups is torch's own."""
    lists = [list(tensors) for tensors in tensorlistlist]
    if not lists or not lists[0]:
        return NotImplemented
    first = lists[0][0]
    for tensors in lists:
        if len(tensors) != len(lists[0]):
            return NotImplemented
    for tensor in lists[0]:
        if tensor.dtype is not first.dtype or tensor.device != first.device:
            return NotImplemented
    return {(first.device, first.dtype): (lists, list(range(len(lists[0]))) if with_indices else [])}
