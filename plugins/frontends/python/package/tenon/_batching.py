"""torch.vmap of functions that compute point by point, which torch does with tensors that wrap others: a capture follows these."""
from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from ._gradient_transforms import leave_to_torch


def by_example(fn: Any, tensors: list) -> tuple:
    """Calls `fn` with a list of examples, one of each tensor along its first dimension. Of the pair that it gives the first, a list of tensors, is for all of
    them, as far as it depends on them.

    A capture records that; nobody else calls it.
    """
    raise NotImplementedError


def vmap(func: Any, in_dims: Any, out_dims: Any, randomness: str, chunk_size: Any, *args: Any, **kwargs: Any) -> Any:
    """``torch._functorch.vmap.vmap_impl``."""
    dims = in_dims if type(in_dims) is tuple else (in_dims,) * len(args)
    mapped = [at for at, dim in enumerate(dims) if dim is not None]
    if not mapped or len(dims) != len(args) or chunk_size is not None or type(out_dims) is not int:
        return NotImplemented
    for at in mapped:
        if type(dims[at]) is not int or dims[at] != 0 or not isinstance(args[at], torch.Tensor) or args[at].dim() == 0:
            return NotImplemented

    def of_example(examples: list) -> tuple:
        given = list(args)
        for at, example in zip(mapped, examples):
            given[at] = example
        results, spec = tree_flatten(func(*given, **kwargs))
        return results, (spec, [result.dim() if isinstance(result, torch.Tensor) else 0 for result in results])

    results, (spec, ranks) = by_example(of_example, [args[at] for at in mapped])
    whole = []
    for result, rank in zip(results, ranks):
        if result.dim() == rank:
            if out_dims != 0:
                leave_to_torch()
            result = result.expand(args[mapped[0]].shape[0], *result.shape)
        whole.append(result if out_dims == 0 else torch.movedim(result, 0, out_dims))
    return tree_unflatten(whole, spec)
