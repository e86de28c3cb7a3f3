"""What torch keeps of a call for its gradient, asked of torch: the call is made again on the meta device, and what was written since is written there."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def operands(twins: Sequence[torch.Tensor], requires_grad: Sequence[bool]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Tensors like ``twins`` that may be written, and the leaves among what they were computed from."""
    import torch

    with torch.enable_grad():
        leaves = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta", requires_grad=wanted) for t, wanted in zip(twins, requires_grad)]
        return [leaf.clone() if leaf.requires_grad else leaf for leaf in leaves], [leaf for leaf in leaves if leaf.requires_grad]


def refuses(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[torch.Tensor], written: Sequence[torch.Tensor],
            results_written: Sequence[int]) -> bool | None:
    """Whether torch refuses the gradient once operands and results of the call are written; None where that cannot be said without elements."""
    import torch

    try:
        with torch.enable_grad():
            given = function(*args, **kwargs)
        results = _tensors(args[0] if given is None else given)
        for tensor in [*written, *(results[i] for i in results_written)]:
            torch.autograd.graph.increment_version(tensor)
        ends = [tensor for tensor in results if tensor.requires_grad]
        if not ends:
            return None
        torch.autograd.grad(ends, list(leaves), [torch.empty_like(end) for end in ends], allow_unused=True)
    except Exception as refusal:
        return True if "modified by an inplace operation" in str(refusal) else None
    return False


def _tensors(given: Any) -> list[Any]:
    if isinstance(given, (tuple, list)):
        return [tensor for item in given for tensor in _tensors(item)]
    return [] if given is None else [given]
