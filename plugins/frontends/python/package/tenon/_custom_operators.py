"""Operators that a program brings with ``torch.library.custom_op``, and their derivatives, in a graph."""
from __future__ import annotations

from typing import Any, Callable

import torch
from torch._library import custom_ops, utils


def function_of(operator: Any) -> Callable[..., Any] | None:
    """What a capture evaluates for a call of an operator whose derivative a program has registered, where a gradient is wanted; None for others."""
    name = operator._qualified_op_name if isinstance(operator, torch._ops.OpOverloadPacket) else operator._name
    definition = custom_ops.OPDEFS.get(name)
    if definition is None or definition._backward_fn is None or definition._opoverload._schema.is_mutable:
        return None
    declared = definition._opoverload._schema
    if any(utils.is_tensorlist_like_type(one.type) for one in (*declared.arguments, *declared.returns)):
        return None
    return _as_function(operator, declared.arguments, definition._setup_context_fn, definition._backward_fn)


def _as_function(operator: Any, declared: Any, setup_context: Any, backward: Callable[..., Any]) -> Callable[..., Any]:
    """The operator as a ``torch.autograd.Function``: torch makes one of the same parts. Its last argument are those that have to be named; the
    others end where only defaults follow."""
    parameters = [(one.name, one.kwarg_only, one.has_default_value(), one.default_value) for one in declared]
    defaults = tuple([one.default_value for one in declared if not one.kwarg_only])
    takes_named = any(one.kwarg_only for one in declared)

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(*args: Any) -> Any:
            return operator(*args[:-1], **args[-1])

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            filled = (*inputs[:-1], *defaults[len(inputs) - 1 :])
            if setup_context is not None and takes_named:
                setup_context(ctx=ctx, inputs=filled, keyword_only_inputs=inputs[-1], output=output)
            elif setup_context is not None:
                setup_context(ctx=ctx, inputs=filled, output=output)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> tuple:
            wanted = ctx.needs_input_grad
            ctx.needs_input_grad = wanted[:-1]
            try:
                found = backward(ctx, *gradients)
            finally:
                ctx.needs_input_grad = wanted
            return (*found, None) if isinstance(found, tuple) else (found, None)

    def apply(*args: Any, **kwargs: Any) -> Any:
        inputs, named, taken = list(args), {}, 0
        for name, kwarg_only, has_default, default in parameters[len(args) :]:
            if name in kwargs:
                value = kwargs[name]
                taken += 1
            elif has_default:
                value = default
            else:
                return NotImplemented
            if kwarg_only:
                named[name] = value
            else:
                inputs.append(value)
        if taken < len(kwargs) or len(inputs) > len(defaults):
            return NotImplemented
        while inputs and _is_default(inputs[-1], parameters[len(inputs) - 1]):
            inputs.pop()
        return Function.apply(*inputs, named)

    return apply


def _is_default(value: Any, parameter: tuple) -> bool:
    _, _, has_default, default = parameter
    return has_default and not isinstance(value, torch.Tensor) and type(value) is type(default) and value == default
