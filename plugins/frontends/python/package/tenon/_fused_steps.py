"""The steps of torch's fused optimizers on a CPU, tensor by tensor: a capture follows them. ``NotImplemented`` is for what only the original does."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

Tensors = list[torch.Tensor]


def _unscaled(step: Callable[..., None]) -> Callable[..., Any]:
    """Leaves a step by gradients that a loss scaler has scaled to the original."""
    @functools.wraps(step)
    def run(*args: Any, grad_scale: torch.Tensor | None = None, found_inf: torch.Tensor | None = None, **settings: Any) -> Any:
        return step(*args, **settings) if grad_scale is None and found_inf is None else NotImplemented

    return run


@_unscaled
def fused_sgd(
    params: Tensors, grads: Tensors, momentum_buffers: Tensors, *, weight_decay: float, momentum: float, lr: Any, dampening: float, nesterov: bool,
    maximize: bool, is_first_step: bool,
) -> None:
    """``torch._fused_sgd_``."""
    for at in range(len(params)):
        param = _wide(params[at])
        grad = _directed(grads[at], param, weight_decay, maximize)
        if momentum != 0:
            buffer = grad if is_first_step else _wide(momentum_buffers[at]) * momentum + grad * (1 - dampening)
            _store(momentum_buffers[at], buffer)
            grad = grad + buffer * momentum if nesterov else buffer
        _store(params[at], param - lr * grad)


@_unscaled
def fused_adam(*args: Any, **settings: Any) -> None:
    """``torch._fused_adam_``: the decay of weights is a part of the gradient."""
    _adam(False, *args, **settings)


@_unscaled
def fused_adamw(*args: Any, **settings: Any) -> None:
    """``torch._fused_adamw_``: weights decay by themselves."""
    _adam(True, *args, **settings)


def _adam(
    decoupled: bool, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, max_exp_avg_sqs: Tensors, state_steps: Tensors, *, lr: Any,
    beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
) -> None:
    for at in range(len(params)):
        step = state_steps[at].double()
        size = lr / (1 - beta1**step)
        correction = (1 - beta2**step).sqrt()
        param = _wide(params[at])
        grad = _directed(grads[at], param, 0 if decoupled else weight_decay, maximize)
        if decoupled and weight_decay != 0:
            param = param - lr * weight_decay * param
        average = torch.lerp(_wide(exp_avgs[at]), grad, 1 - beta1)
        square = beta2 * _wide(exp_avg_sqs[at]) + (1 - beta2) * grad * grad
        _store(exp_avgs[at], average)
        _store(exp_avg_sqs[at], square)
        if amsgrad:
            square = torch.maximum(_wide(max_exp_avg_sqs[at]), square)
            _store(max_exp_avg_sqs[at], square)
        _store(params[at], param - size * average / (square.sqrt() / correction + eps))


@_unscaled
def fused_adagrad(
    params: Tensors, grads: Tensors, state_sums: Tensors, state_steps: Tensors, *, lr: Any, lr_decay: float, weight_decay: float, eps: float, maximize: bool,
) -> None:
    """``torch._fused_adagrad_``."""
    for at in range(len(params)):
        size = lr / (1 + (state_steps[at].double() - 1) * lr_decay)
        param = _wide(params[at])
        grad = _directed(grads[at], param, weight_decay, maximize)
        total = _wide(state_sums[at]) + grad * grad
        _store(state_sums[at], total)
        _store(params[at], param - size * grad / (total.sqrt() + eps))


def _store(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """As torch's kernels write: not counted in the version of the tensor."""
    tensor.data.copy_(value)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """In the dtype that torch computes a step with."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _directed(grad: torch.Tensor, param: torch.Tensor, weight_decay: float, maximize: bool) -> torch.Tensor:
    grad = -_wide(grad) if maximize else _wide(grad)
    return grad + param * weight_decay if weight_decay != 0 else grad
