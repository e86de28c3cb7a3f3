"""How torch lays out what scaled_dot_product_attention gives.

On the meta device torch takes other kernels for it than on the CPU, whose result lies otherwise, and imports its symbolic shapes for
that: a second and more.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_FUSED, _EFFICIENT = 1, 2  # SDPBackend.FLASH_ATTENTION, EFFICIENT_ATTENTION
_SAMPLES = [((2, 3, 4, 8), (96, 32, 8, 1)), ((2, 3, 4, 8), (96, 8, 24, 1)), ((2, 3, 4, 8), (288, 8, 72, 1)), ((1, 3, 1, 8), (24, 8, 5, 1))]
_found: list[bool] = []


def strides_of_result(args: tuple, kwargs: dict[str, Any], device: torch.device) -> tuple[int, ...] | None:
    """The strides of what the call gives, or None where this does not know.

    Parameters
    ----------
    args, kwargs
        Of scaled_dot_product_attention, with tensors of the meta device.
    device
        Where the tensors are.
    """
    choose = getattr(torch, "_fused_sdp_choice", None)
    if device.type == "cuda":
        return None if choose is None else _strides_on_card(choose, args, kwargs, device)
    if choose is None or not _lies_like_query():
        return None
    args, kwargs = _placed(args, kwargs, "cpu")
    if choose(*args, **kwargs) != _FUSED:
        return None
    return torch.empty_like(args[0] if args else kwargs["query"]).stride()


def _strides_on_card(choose: Callable[..., int], args: tuple, kwargs: dict[str, Any], device: torch.device) -> tuple[int, ...] | None:
    """The kernels of a card lay the result out in one way each: that for single precision head by head of each place, whatever the query does."""
    args, kwargs = _placed(args, kwargs, device)
    kernel, query = choose(*args, **kwargs), args[0] if args else kwargs["query"]
    if kernel == _EFFICIENT:
        value = args[2] if len(args) > 2 else kwargs["value"]
        batch, heads, length, _ = query.shape
        return query.new_empty(batch, length, heads, value.shape[-1]).transpose(1, 2).stride()
    return torch.empty_like(query).stride() if kernel == _FUSED and query.shape[-1] % 8 == 0 else None


def _placed(args: tuple, kwargs: dict[str, Any], device: Any) -> tuple[tuple, dict[str, Any]]:
    """The arguments with tensors of the same layouts in memory of the device that nobody touches."""
    def there(argument: Any) -> Any:
        if not isinstance(argument, torch.Tensor):
            return argument
        return torch.empty_strided(argument.shape, argument.stride(), dtype=argument.dtype, device=device)

    return tuple(map(there, args)), {name: there(value) for name, value in kwargs.items()}


def _lies_like_query() -> bool:
    """Whether the fused kernel of this torch gives what ``empty_like(query)`` does: asked of the kernel itself, until it says so."""
    if not _found:
        for shape, strides in _SAMPLES:
            query = torch.empty_strided(shape, strides, dtype=torch.float32, device="cpu").zero_()
            if torch._fused_sdp_choice(query, query, query) != _FUSED:
                return False  # switched off for now, or this processor has none
            if torch.nn.functional.scaled_dot_product_attention(query, query, query).stride() != torch.empty_like(query).stride():
                return False
        _found.append(True)
    return True
