"""Runs of functions of torch's that are kept for their gradients: a graph makes such a call with torch's own history, and asks that for the gradients.

What torch saves of the operands and results is not kept here: the graph has these, and gives them where gradients are computed.
"""
from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch.autograd.graph import _engine_run_backward  # torch.autograd.grad takes as long again to look at its arguments

from tenon._kept_by_torch import Zeros

_numbers = itertools.count(1)
_runs: WeakValueDictionary[int, Run] = WeakValueDictionary()


class _OfThread(threading.local):
    scopes: tuple[dict[int, torch.Tensor], ...] = ()


_of_thread = _OfThread()


def begin() -> None:
    """Keeps what this thread runs until :func:`end`; :func:`owner` keeps a run for longer."""
    _of_thread.scopes += ({},)


def end() -> None:
    _of_thread.scopes = _of_thread.scopes[:-1]


class _Owner(bytearray):
    """The memory of a number, which keeps the run of that number."""

    run: Run


def owner(number: int | torch.Tensor) -> torch.Tensor:
    """The number of a run of this thread, in memory with which the run ends."""
    return _of_thread.scopes[-1][int(number)]


def tensors_in(arguments: Any, found: list[torch.Tensor]) -> list[torch.Tensor]:
    """Those found and the tensors among the arguments of a call, in the order in which it has them. Captures follow this, too."""
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            found.append(argument)
        elif isinstance(argument, (tuple, list)):
            tensors_in(argument, found)
    return found


def results_in(given: Any) -> list[torch.Tensor]:
    return list(given) if isinstance(given, (tuple, list)) else [given]


def _place(tensor: torch.Tensor) -> tuple:
    """What tells tensors apart that are not the same elements."""
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype, tensor.is_conj(), tensor.is_neg()


class _Saved:
    """What torch saves: a tensor, or the number of one that whoever asks for gradients has."""

    __slots__ = ("number", "stride", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor: torch.Tensor | None = tensor
        self.number = 0
        self.stride = tensor.stride()

    def stands_for(self, number: int) -> None:
        self.tensor, self.number = None, number


class _Given:
    """What a graph has of what torch saves, while it asks for gradients. torch's nodes hold this, and so nothing that holds them."""

    def __init__(self, kept: Sequence[int]) -> None:
        self.kept = kept  # numbers of operands and results, in a row
        self.lock = threading.Lock()
        self.tensors: dict[int, torch.Tensor] = {}

    @contextlib.contextmanager
    def given(self, tensors: Sequence[torch.Tensor]) -> Iterator[None]:
        with self.lock:
            self.tensors = dict(zip(self.kept, tensors))
            try:
                yield
            finally:
                self.tensors = {}

    def unpack(self, saved: _Saved) -> torch.Tensor:
        if saved.tensor is not None:
            return saved.tensor
        given = self.tensors[saved.number]
        return given if given.stride() == saved.stride else torch.empty_strided(given.shape, saved.stride, dtype=given.dtype, device=given.device).copy_(given)


def _numbers_of(saved: Sequence[_Saved], tensors: Sequence[torch.Tensor]) -> list[int]:
    """Which of some tensors each is; -1 for none."""
    places = {_place(tensor): number for number, tensor in reversed([*enumerate(tensors)])}
    return [places.get(_place(one.tensor), -1) for one in saved]


@contextlib.contextmanager
def _saving(given: _Given) -> Iterator[list[_Saved]]:
    """What torch saves meanwhile."""
    saved: list[_Saved] = []
    into: list[list[_Saved]] = [saved]

    def pack(tensor: torch.Tensor) -> _Saved:
        into[0].append(_Saved(tensor))
        return into[0][-1]

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(pack, given.unpack):
        yield saved
    into.clear()


def _copy_borrowed(saved: Sequence[_Saved], borrowed: Sequence[torch.Tensor]) -> None:
    """Their memory is the graph's."""
    storages = {tensor.untyped_storage()._cdata for tensor in borrowed}
    for one in saved:
        if one.tensor is not None and one.tensor.untyped_storage()._cdata in storages:
            one.tensor = one.tensor.clone()


def _as_leaves(argument: Any, wanted: Iterator[bool], made: list[torch.Tensor]) -> Any:
    """An argument with tensors that have no past. `wanted`: by tensor, whether it requires grad."""
    if isinstance(argument, torch.Tensor):
        made.append(argument.detach().requires_grad_(next(wanted)))
        return made[-1]
    return type(argument)([_as_leaves(item, wanted, made) for item in argument]) if isinstance(argument, (tuple, list)) else argument


class _Result:
    """What is left of a result: where gradients begin."""

    def __init__(self, tensor: torch.Tensor | None) -> None:
        self.edge = None if tensor is None or not tensor.requires_grad else torch.autograd.graph.get_gradient_edge(tensor)
        if self.edge is not None:
            self.shape, self.dtype, self.device = tensor.shape, tensor.dtype, tensor.device

    def takes(self, gradient: torch.Tensor | None) -> bool:
        return self.edge is not None and gradient is not None and gradient.shape == self.shape

    def zeros(self) -> torch.Tensor:
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)


class Run:
    """A call that was made, and what its gradients need. Nothing else holds what it has given: the graph has that in memory of its own."""

    def __init__(self, results: Sequence[torch.Tensor | None], leaves: list[torch.Tensor], given: _Given) -> None:
        self.results = [_Result(tensor) for tensor in results]
        self.leaves = leaves
        self.given = given

    def number(self) -> torch.Tensor:
        """A new one, by which it is known. Its memory has the run."""
        number = next(_numbers)
        _runs[number] = self
        memory = _Owner(number.to_bytes(8, "little"))
        memory.run = self
        tensor = torch.frombuffer(memory, dtype=torch.int64)[0]
        if _of_thread.scopes:
            _of_thread.scopes[-1][number] = tensor
        return tensor

    @classmethod
    def of(cls, function: Callable[..., Any], args: tuple, kwargs: dict, wanted: Sequence[bool], kept: Sequence[int]) -> tuple[list[torch.Tensor], Run]:
        """With what the call gives."""
        operands: list[torch.Tensor] = []
        flags = iter(wanted)
        args, kwargs = _as_leaves(args, flags, operands), {name: _as_leaves(argument, flags, operands) for name, argument in kwargs.items()}
        given = _Given(kept)
        with _saving(given) as saved:
            results = results_in(function(*args, **kwargs))
        for one, number in zip(saved, _numbers_of(saved, [*operands, *results])):
            if number in kept:
                one.stands_for(number)
        _copy_borrowed(saved, operands)
        return results, cls(results, [operand for operand in operands if operand.requires_grad], given)

    def gradients(self, kept: Sequence[torch.Tensor], given: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        with self.given.given(kept):
            return self._walk(given, False)

    def gradients_again(self, kept: Sequence[torch.Tensor], given: Sequence[torch.Tensor | None], reached: Sequence[bool]) -> tuple[list[torch.Tensor | None], Run]:
        """Those of the operands that are `reached`, as a run from the operands and the gradients that are given."""
        tangents = [g.detach().requires_grad_() if r.takes(g) else None for r, g in zip(self.results, given)]
        with self.given.given(kept), _saving(self.given) as saved:
            found = self._walk(tangents, True)
        _copy_borrowed(saved, [*kept, *(t for t in tangents if t is not None)])
        leaves = [r.zeros().requires_grad_() if t is None else t for r, g, t in zip(self.results, given, tangents) if g is not None]
        of_reached = [gradient for gradient, wanted in zip(found, reached) if wanted]
        return of_reached, Run(of_reached, [*self.leaves, *leaves], self.given)

    def _walk(self, given: Sequence[torch.Tensor | None], create_graph: bool) -> list[torch.Tensor | None]:
        pairs = [(r.edge, g) for r, g in zip(self.results, given) if r.takes(g)]
        if not pairs:
            return [None] * len(self.leaves)
        ends, gradients = zip(*pairs)
        return list(_engine_run_backward(ends, gradients, True, create_graph, tuple(self.leaves), True, accumulate_grad=False))


class Keeper:
    """A function that is called as a graph calls it, and its run kept: gives the results, and the number of the run."""

    def __init__(self, function: Callable[..., Any], wanted: Sequence[bool], kept: Sequence[int]) -> None:
        self.function = function
        self.wanted = wanted
        self.kept = kept
        self.__name__ = f"kept_{getattr(function, '__name__', type(function).__name__)}"  # as graphs of FX call it

    def __call__(self, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
        results, run = Run.of(self.function, args, kwargs, self.wanted, self.kept)
        return [*(result.detach() for result in results), run.number()]


def _run_of(number: torch.Tensor) -> Run:
    run = _runs.get(int(number))
    if run is None:
        raise RuntimeError("what torch keeps of a call for its gradient is gone")
    return run


def gradients_of_run(
    number: torch.Tensor, kept: Sequence[torch.Tensor], given: Sequence[torch.Tensor | None], reached: Sequence[bool], is_last: bool = False
) -> list[torch.Tensor]:
    """The gradients of the operands that are wanted and `reached`. A result that is given none has None, or an empty vector. `is_last`: this thread
    keeps the run for nothing else."""
    run = _run_of(number)
    found = run.gradients(kept, given)
    if is_last and _of_thread.scopes:
        _of_thread.scopes[-1].pop(int(number), None)
    return [torch.zeros_like(leaf) if g is None else g for leaf, g, wanted in zip(run.leaves, found, reached) if wanted]


def gradients_again(number: torch.Tensor, kept: Sequence[torch.Tensor], given: Sequence[torch.Tensor | None], reached: Sequence[bool]) -> list[torch.Tensor]:
    """The same, and the number of the run that gives them, where this thread keeps runs."""
    if not _of_thread.scopes:
        return [*gradients_of_run(number, kept, given, reached), torch.zeros((), dtype=torch.int64, device="cpu")]
    run = _run_of(number)
    found, again = run.gradients_again(kept, given, reached)
    leaves = [leaf for leaf, wanted in zip(run.leaves, reached) if wanted]
    return [*(torch.zeros_like(leaf) if g is None else g.detach() for leaf, g in zip(leaves, found)), again.number()]


def outlook(function: Callable[..., Any], args: tuple, kwargs: dict) -> tuple[tuple[bool, ...], tuple[int, ...], tuple[bool, ...]] | None:
    """Of a call with tensors on the meta device: which results torch would differentiate, the numbers of operands and results in a row that it saves, and
    which of the operands that require grad get one. With zeros on the host where the meta device cannot say it. None also where that would call the program."""
    if _is_differentiated_in_python(function):
        return None
    try:
        return _outlook(function, args, kwargs)
    except Exception:
        zeros = Zeros()
        again = zeros.instead(args), zeros.instead(kwargs)
        return None if zeros.are_too_many() else _outlook(function, *again)


def _is_differentiated_in_python(function: Callable[..., Any]) -> bool:
    """Whether a derivative has been registered for an operator by Python code."""
    name = getattr(function, "_qualified_op_name", None) or getattr(function, "_name", None)
    if name is None:
        return False
    operator = name.partition(".")[0].replace("::", "/") + "/"
    packet = operator[:-1] + "."
    return any(kernel.startswith((operator, packet)) and "Autograd" in kernel for kernel in torch.library._impls)


def _outlook(function: Callable[..., Any], args: tuple, kwargs: dict) -> tuple[tuple[bool, ...], tuple[int, ...], tuple[bool, ...]] | None:
    operands = tensors_in([*args, *kwargs.values()], [])
    with _saving(_Given(())) as saved:
        results = results_in(function(*args, **kwargs))
        if any(not isinstance(result, torch.Tensor) for result in results):
            return None
        kept = {*_numbers_of(saved, [*operands, *results])} - {-1}
        ends = [result for result in results if result.requires_grad]
        leaves = [operand for operand in operands if operand.requires_grad]
        found = torch.autograd.grad(ends, leaves, [torch.empty_like(end) for end in ends], allow_unused=True) if ends else [None] * len(leaves)
    return tuple(result.requires_grad for result in results), tuple(sorted(kept)), tuple(g is not None for g in found)
