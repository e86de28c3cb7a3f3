"""What of torch.optim branches on how many steps there were, with both ways in the graph: a capture follows it.

They compute as torch.optim does, and write as often. ``NotImplemented`` is for what the original does in a graph, or only there.
"""
from __future__ import annotations

from typing import Any

import torch
from torch.optim.optimizer import _to_scalar
from torch.optim.swa_utils import AveragedModel, get_swa_avg_fn

from tenon._torch_in_python import assume

Tensors = list[torch.Tensor]


def radam_of_one(params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, state_steps: Tensors, **settings: Any) -> Any:
    """``torch.optim.radam._single_tensor_radam``."""
    if _is_unusual(settings):
        return NotImplemented
    beta1, beta2, eps = settings["beta1"], settings["beta2"], settings["eps"]
    lr = _to_scalar(settings["lr"])
    for param, grad, average, square, steps in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
        grad = _begun(param, grad, steps, lr, settings)
        average.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        rectified, rect = _rectification(steps, beta2)
        step = steps.item()
        plain = average / (1 - beta1**step) * lr
        adaptive = square.sqrt().add_(eps).reciprocal() * ((1 - beta2**step) ** 0.5)
        param.add_(torch.where(rectified, plain * adaptive * rect.item(), plain), alpha=-1.0)
    return None


def radam_of_lists(params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, state_steps: Tensors, **settings: Any) -> Any:
    """``torch.optim.radam._multi_tensor_radam``."""
    if _is_unusual(settings):
        return NotImplemented
    beta1, beta2, eps = settings["beta1"], settings["beta2"], settings["eps"]
    lr = _to_scalar(settings["lr"])
    for param, grad, average, square, steps in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
        grad = _begun(param, grad, steps, lr, settings)
        average.lerp_(grad, 1 - beta1)
        square.mul_(beta2)
        square.addcmul_(grad, grad, value=1 - beta2)
        rectified, rect = _rectification(steps, beta2)
        count = steps.double()
        correction = 1 - beta1**count
        size = ((1 - beta2**count) ** 0.5) * (lr * rect / correction) * -1
        unrectified = (lr * torch.where(rectified, 0.0, 1.0).double() / correction) * -1
        buffer = square.sqrt().add_(eps).div_(size.item()).reciprocal_().add_(unrectified.item())
        param.addcmul_(average, buffer)
    return None


def _begun(param: torch.Tensor, grad: torch.Tensor, steps: torch.Tensor, lr: float, settings: dict) -> torch.Tensor:
    """Counts a step, and gives the gradient with the decay of weights, or decays them where that stands apart."""
    steps.add_(1)
    grad = -grad if settings["maximize"] else grad
    decay = settings["weight_decay"]
    if decay == 0:
        return grad
    if not settings.get("decoupled_weight_decay", False):
        return grad.add(param, alpha=decay)
    param.mul_(1 - lr * decay)
    return grad


def _rectification(steps: torch.Tensor, beta2: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether the average of squares is of use yet, and by how much it is corrected (0 where it is of none)."""
    step = steps.double()
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * (beta2**step) / (1 - beta2**step)
    rect = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
    rectified = length > 5.0
    return rectified, torch.where(rectified, rect, 0.0)


def asgd_of_one(params: Tensors, grads: Tensors, axs: Tensors, mus: Tensors, etas: Tensors, state_steps: Tensors, **settings: Any) -> Any:
    """``torch.optim.asgd._single_tensor_asgd``."""
    if _is_unusual(settings):
        return NotImplemented
    lambd = settings["lambd"]
    lr = _to_scalar(settings["lr"])
    for param, grad, average, mu, eta, steps in zip(params, grads, axs, mus, etas, state_steps):
        grad = _begun(param, grad, steps, lr, settings)
        size = eta.item()
        param.mul_(1 - lambd * size)
        param.add_(grad, alpha=-size)
        average.copy_(torch.where(mu != 1, average + param.sub(average).mul_(mu), param))
        step = steps.double()
        eta.copy_(lr / ((1 + lambd * lr * step) ** settings["alpha"]))
        mu.copy_(1 / torch.clamp(step - settings["t0"], min=1))
    return None


def asgd_of_lists(params: Tensors, grads: Tensors, axs: Tensors, mus: Tensors, etas: Tensors, state_steps: Tensors, **settings: Any) -> Any:
    """``torch.optim.asgd._multi_tensor_asgd``."""
    if _is_unusual(settings):
        return NotImplemented
    lambd = settings["lambd"]
    lr = _to_scalar(settings["lr"])
    for param, grad, average, mu, eta, steps in zip(params, grads, axs, mus, etas, state_steps):
        grad = _begun(param, grad, steps, lr, settings)
        param.addcmul_(grad.add(param, alpha=lambd), eta, value=-1)
        average.addcmul_(param.sub(average), mu)
        eta.copy_(lr / ((1 + lambd * lr * steps) ** settings["alpha"]))
        mu.copy_(1 / torch.clamp(steps.double() - settings["t0"], min=1))
    return None


def update_average(average: AveragedModel, model: torch.nn.Module) -> Any:
    """``torch.optim.swa_utils.AveragedModel.update_parameters``, but for the first time: the run finds whether it is that."""
    if not assume(average.n_averaged > 0):
        return NotImplemented
    own, others = list(average.parameters()), list(model.parameters())
    if average.use_buffers:
        own, others = [*average.module.parameters(), *average.module.buffers()], [*others, *model.buffers()]
    own, others = [t.detach() for t, _ in zip(own, others)], [other.detach().to(t.device) for t, other in zip(own, others)]
    if average.multi_avg_fn is not None:
        for kind, kind_of_other in _by_kind(own, others):
            average.multi_avg_fn(kind, kind_of_other, average.n_averaged.to(kind[0].device))
    elif average.avg_fn is None and not all(t.is_cpu for t in own):
        return NotImplemented
    else:
        mean = get_swa_avg_fn() if average.avg_fn is None else average.avg_fn
        for tensor, other in zip(own, others):
            value = mean(tensor, other, average.n_averaged.to(tensor.device))
            with torch.no_grad():
                tensor.copy_(value)
    if not average.use_buffers:
        for buffer, other in zip(average.module.buffers(), model.buffers()):
            buffer.detach().copy_(other.detach().to(buffer.device))
    average.n_averaged += 1
    return None


def _by_kind(tensors: Tensors, others: Tensors) -> list[tuple[Tensors, Tensors]]:
    """Lists of tensors of one device and dtype each, which nobody sees the order of, and what belongs to them."""
    groups: list[tuple[Tensors, Tensors]] = []
    for tensor, other in zip(tensors, others):
        for group, of_others in groups:
            if group[0].dtype is tensor.dtype and group[0].device == tensor.device:
                group.append(tensor)
                of_others.append(other)
                break
        else:
            groups.append(([tensor], [other]))
    return groups


def _is_unusual(settings: dict) -> bool:
    return settings["capturable"] or settings["differentiable"] or settings["has_complex"]
