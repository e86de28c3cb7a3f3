"""The steps of torch's fused optimizers on a CPU, tensor by tensor: a capture follows them. ``NotImplemented`` is for what only the original does."""
from __future__ import annotations

from typing import Any

import torch

Tensors = list[torch.Tensor]


def fused_sgd(
    params: Tensors, grads: Tensors, momentum_buffers: Tensors, *, weight_decay: float, momentum: float, lr: Any, dampening: float, nesterov: bool,
    maximize: bool, is_first_step: bool, grad_scale: torch.Tensor | None = None, found_inf: torch.Tensor | None = None,
) -> Any:
    """``torch._fused_sgd_``."""
    if grad_scale is not None or found_inf is not None:
        return NotImplemented
    for at in range(len(params)):
        param = _wide(params[at])
        grad = _directed(grads[at], param, weight_decay, maximize)
        if momentum != 0:
            buffer = grad if is_first_step else _wide(momentum_buffers[at]) * momentum + grad * (1 - dampening)
            momentum_buffers[at].copy_(buffer)
            grad = grad + buffer * momentum if nesterov else buffer
        params[at].copy_(param - lr * grad)


def fused_adam(*args: Any, **settings: Any) -> Any:
    """``torch._fused_adam_``: the decay of weights is a part of the gradient."""
    return _adam(False, *args, **settings)


def fused_adamw(*args: Any, **settings: Any) -> Any:
    """``torch._fused_adamw_``: weights decay by themselves."""
    return _adam(True, *args, **settings)


def _adam(
    decoupled: bool, params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, max_exp_avg_sqs: Tensors, state_steps: Tensors, *, lr: Any,
    beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool, grad_scale: torch.Tensor | None = None,
    found_inf: torch.Tensor | None = None,
) -> Any:
    if grad_scale is not None or found_inf is not None:
        return NotImplemented
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
        exp_avgs[at].copy_(average)
        exp_avg_sqs[at].copy_(square)
        if amsgrad:
            square = torch.maximum(_wide(max_exp_avg_sqs[at]), square)
            max_exp_avg_sqs[at].copy_(square)
        params[at].copy_(param - size * average / (square.sqrt() / correction + eps))


def fused_adagrad(
    params: Tensors, grads: Tensors, state_sums: Tensors, state_steps: Tensors, *, lr: Any, lr_decay: float, weight_decay: float, eps: float, maximize: bool,
    grad_scale: torch.Tensor | None = None, found_inf: torch.Tensor | None = None,
) -> Any:
    """``torch._fused_adagrad_``."""
    if grad_scale is not None or found_inf is not None:
        return NotImplemented
    for at in range(len(params)):
        size = lr / (1 + (state_steps[at].double() - 1) * lr_decay)
        param = _wide(params[at])
        grad = _directed(grads[at], param, weight_decay, maximize)
        total = _wide(state_sums[at]) + grad * grad
        state_sums[at].copy_(total)
        params[at].copy_(param - size * grad / (total.sqrt() + eps))


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """In the dtype that torch computes a step with."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _directed(grad: torch.Tensor, param: torch.Tensor, weight_decay: float, maximize: bool) -> torch.Tensor:
    grad = -_wide(grad) if maximize else _wide(grad)
    return grad + param * weight_decay if weight_decay != 0 else grad
