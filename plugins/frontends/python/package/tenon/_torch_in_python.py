"""What ``torch.autograd.Function.apply`` does where no gradient is wanted, in Python: a capture follows it."""
from __future__ import annotations

from typing import Any

import torch


class Context:
    """What the ``forward`` of a function may do with its ``ctx``."""

    def __init__(self, args: tuple) -> None:
        self.needs_input_grad = tuple([isinstance(a, torch.Tensor) and a.requires_grad for a in args])
        self.to_save: tuple = ()
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


def apply(cls: type[torch.autograd.Function], *args: Any) -> Any:
    """``cls.apply(*args)``; ``NotImplemented`` where gradients are wanted."""
    ctx = Context(args)
    if torch.is_grad_enabled() and True in ctx.needs_input_grad:
        return NotImplemented
    with torch.no_grad():
        if cls.setup_context is torch.autograd.Function.setup_context:
            outputs = cls.forward(ctx, *args)
        else:
            outputs = cls.forward(*args)
            cls.setup_context(ctx, args, outputs)
        if type(outputs) is tuple:
            return tuple([_as_output(output, args, ctx) for output in outputs])
        return _as_output(outputs, args, ctx)


def _as_output(output: Any, args: tuple, ctx: Context) -> Any:
    """An input that is given as it is becomes another tensor of the same memory, unless the function says that it has written it."""
    if not isinstance(output, torch.Tensor):
        return output
    for dirty in ctx.dirty_tensors:
        if output is dirty:
            return output
    for arg in args:
        if output is arg:
            return output.detach() if output.requires_grad else output.view_as(output)
    return output
