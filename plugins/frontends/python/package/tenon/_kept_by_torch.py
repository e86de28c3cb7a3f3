"""What torch keeps of a call for its gradient, asked of torch: the call is made again on the meta device, or with zeros where that cannot say it, and what
was written since is written there."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_MOST_ANSWERS = 4096
_answers: dict[Hashable, bool] = {}  # by question
_MOST_ELEMENTS = 1 << 20  # for which a call is made with zeros of the host
_BY_DEVICE = {"scaled_dot_product_attention"}  # other kernels, which keep other things


def operands(twins: Sequence[torch.Tensor], requires_grad: Sequence[bool]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Tensors like ``twins`` that may be written, and the leaves among what they were computed from."""
    import torch

    with torch.enable_grad():
        leaves = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta", requires_grad=wanted) for t, wanted in zip(twins, requires_grad)]
        return [leaf.clone() if leaf.requires_grad else leaf for leaf in leaves], [leaf for leaf in leaves if leaf.requires_grad]


def refuses(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[torch.Tensor], written: Sequence[torch.Tensor],
            results_written: Sequence[int]) -> bool | None:
    """Whether torch refuses the gradient once operands and results of the call are written; None where that cannot be said without elements.

    What torch keeps hangs on the call and on what kind of tensors it has, not on their sizes beyond 1: a question of a kind is asked once (10 ms
    for a batch norm, whose gradient on the meta device is Python).
    """
    return _answer(_refuses_written, function, args, kwargs, leaves, written, results_written)


def lets_go(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[torch.Tensor], *_: Any) -> bool | None:
    """Whether torch refuses the gradient the second time, since it has let go of something; None where that cannot be said without elements."""
    return _answer(_refuses_twice, function, args, kwargs, leaves, (), ())


def _answer(asking: Callable[..., bool], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[torch.Tensor],
            written: Sequence[torch.Tensor], results_written: Sequence[int]) -> bool | None:
    kinds: dict[int, int] = {}
    try:
        question = (asking, function, _kind_of(args, kinds), _kind_of(kwargs, kinds), tuple(kinds[id(tensor)] for tensor in written), tuple(results_written))
        hash(question)
    except (KeyError, TypeError):
        return _asked_anew(asking, function, args, kwargs, leaves, written, results_written)
    if question in _answers:
        return _answers[question]
    answer = _asked_anew(asking, function, args, kwargs, leaves, written, results_written)
    if answer is not None:  # else smaller tensors of the kind may say it
        if len(_answers) >= _MOST_ANSWERS:
            _answers.clear()
        _answers[question] = answer
    return answer


def _kind_of(value: Any, kinds: dict[int, int]) -> Hashable:
    """What of an argument may decide what is kept. Tensors are numbered as they come. Raises TypeError for what is not known to be plain."""
    import torch

    if isinstance(value, torch.Tensor):
        number = kinds.setdefault(id(value), len(kinds))
        return number, value.dtype, value.requires_grad, tuple(min(size, 2) for size in value.shape), value.is_contiguous()
    if isinstance(value, (tuple, list)):
        return type(value), tuple(_kind_of(item, kinds) for item in value)
    if isinstance(value, dict):
        return tuple((key, _kind_of(item, kinds)) for key, item in value.items())
    if isinstance(value, (type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format)):
        return type(value), value
    raise TypeError(f"an argument of type {type(value).__name__}")


def _asked_anew(asking: Callable[..., bool], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[torch.Tensor],
                written: Sequence[torch.Tensor], results_written: Sequence[int]) -> bool | None:
    of_host = Zeros()
    again = (of_host.instead(args), of_host.instead(kwargs), [of_host.instead(t) for t in written])
    answer = None if getattr(function, "__name__", "") in _BY_DEVICE else _asked(asking, function, args, kwargs, leaves, written, results_written)
    if answer is not None or of_host.are_too_many():
        return answer
    return _asked(asking, function, again[0], again[1], of_host.leaves, again[2], results_written)


class Zeros:
    """Tensors of the host in the places of those of the meta device."""

    def __init__(self) -> None:
        self.made: dict[int, torch.Tensor] = {}
        self.leaves: list[torch.Tensor] = []
        self.elements = 0

    def are_too_many(self) -> bool:
        return self.elements > _MOST_ELEMENTS

    def instead(self, argument: Any) -> Any:
        import torch

        if isinstance(argument, dict):
            return {name: self.instead(item) for name, item in argument.items()}
        if type(argument) in (tuple, list):
            return type(argument)([self.instead(item) for item in argument])
        if not isinstance(argument, torch.Tensor):
            return argument
        if id(argument) not in self.made:
            self.elements += argument.numel()
            size = argument.shape if self.elements <= _MOST_ELEMENTS else (0,)
            with torch.enable_grad():
                leaf = torch.zeros(size, dtype=argument.dtype, requires_grad=argument.requires_grad)
                self.made[id(argument)] = leaf.clone() if leaf.requires_grad else leaf
            if leaf.requires_grad:
                self.leaves.append(leaf)
        return self.made[id(argument)]


def _asked(asking: Callable[..., bool], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[torch.Tensor],
           written: Sequence[torch.Tensor], results_written: Sequence[int]) -> bool | None:
    import torch

    try:
        with torch.enable_grad():
            given = function(*args, **kwargs)
        results = _tensors(args[0] if given is None else given)
        for tensor in [*written, *(results[i] for i in results_written)]:
            torch.autograd.graph.increment_version(tensor)
        ends = [tensor for tensor in results if tensor.requires_grad]
        return asking(lambda: torch.autograd.grad(ends, list(leaves), [torch.empty_like(end) for end in ends], allow_unused=True)) if ends else None
    except Exception:
        return None


def _refuses_written(gradients: Callable[[], Any]) -> bool:
    return _is_refused(gradients, "modified by an inplace operation")


def _refuses_twice(gradients: Callable[[], Any]) -> bool:
    gradients()
    return _is_refused(gradients, "a second time")


def _is_refused(gradients: Callable[[], Any], words: str) -> bool:
    try:
        gradients()
    except RuntimeError as refusal:
        if words in str(refusal):
            return True
        raise
    return False


def _tensors(given: Any) -> list[Any]:
    if isinstance(given, (tuple, list)):
        return [tensor for item in given for tensor in _tensors(item)]
    return [] if given is None else [given]
