"""Graphs of both libraries for backends that take only torch's calls."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tenon import _render, _traced
from tenon._messages import tell

if TYPE_CHECKING:
    from tenon._graph import Graph

_told: set[str] = set()
_CROSSINGS = {"torch.from_numpy", "torch.Tensor.numpy", "torch.Tensor.__array__", "torch.as_tensor", "torch.asarray", "torch.tensor"}


def holds_numpy(traced: _traced.TracedGraph) -> bool:
    """Whether a graph has a call of NumPy's, or takes or gives its arrays."""
    return any(name.startswith("numpy.") or name in _CROSSINGS for name in traced.op_names)


class ByLibrary:
    """Runs a graph in pieces: sequences of torch's calls as the backend compiles them, other calls one by one.

    The first run makes every call itself, and finds out by that which values are tensors.
    """

    def __init__(self, graph: Graph, backend: Callable) -> None:
        self._graph = graph
        self._backend = backend
        self._steps: list[_Call | _Piece] | None = None

    def __call__(self, *inputs: Any) -> tuple:
        if self._steps is None:
            return self._run_call_by_call(inputs)
        values = self._graph.named_inputs(inputs)
        for step in self._steps:
            step.run(values)
        return self._graph.leaving(values)

    def _run_call_by_call(self, inputs: tuple) -> tuple:
        traced = self._graph.traced
        values = self._graph.named_inputs(inputs)
        steps = [_Call(self._graph, call, traced.op_names[index]) for index, call in enumerate(traced.calls)]
        for step in steps:
            step.run(values)
        self._steps = list(self._joined(steps, values))
        return self._graph.leaving(values)

    def _joined(self, steps: list[_Call], values: dict[str, Any]) -> Iterator[_Call | _Piece]:
        sequence: list[_Call] = []
        for at, step in enumerate(steps):
            if step.is_of_tensors(values):
                sequence.append(step)
                continue
            if sequence:
                yield _Piece(self._graph, sequence, steps[at:], self._backend)
            sequence = []
            yield step
        if sequence:
            yield _Piece(self._graph, sequence, [], self._backend)


class _Call:
    """One call of the graph."""

    def __init__(self, graph: Graph, call: tuple, op_name: str) -> None:
        self._graph = graph
        self.call = call
        self.op_name = op_name
        results, _, args, kwargs, *_ = call
        self.reads = list(_names((args, kwargs)))
        self.gives = list(_names(results))
        self._has_branches = any(isinstance(one, _traced.TracedGraph) for one in args)

    def run(self, values: dict[str, Any]) -> None:
        self._graph.run_call(self.call, values)

    def is_of_tensors(self, values: dict[str, Any]) -> bool:
        import torch

        return not self._has_branches and all(isinstance(values[name], torch.Tensor) for name in (*self.reads, *self.gives))


class _Piece:
    """A sequence of torch's calls, compiled when it is first run."""

    def __init__(self, graph: Graph, sequence: list[_Call], later: list[_Call], backend: Callable) -> None:
        wanted = {name for call in later for name in call.reads} | set(_names(_render.leaving_values(graph.traced)))
        given: dict[str, None] = {}  # in order
        inputs: dict[str, None] = {}
        for call in sequence:
            inputs.update((name, None) for name in call.reads if name not in given)
            given.update(dict.fromkeys(call.gives))
        self._inputs = list(inputs)
        self._outputs = [name for name in given if name in wanted]
        self._backend = backend
        references = {ref.name: ref for call in sequence for ref in _references(call.call[0])}
        traced: Any = SimpleNamespace(
            name=graph.name, inputs=[(name, "", "") for name in self._inputs], copies=[], calls=[call.call for call in sequence],
            op_names=[call.op_name for call in sequence], outputs=[references[name] for name in self._outputs], updates=[])
        self._graph = type(graph)(traced)
        self._run: Callable | None = None

    def run(self, values: dict[str, Any]) -> None:
        given = [values[name] for name in self._inputs]
        if self._run is None:
            self._run = self._backend(self._graph.for_backend(given), given)
        values.update(zip(self._outputs, self._run(*given), strict=True))


def _references(structure: Any) -> Iterator[Any]:
    """The values that the graph computes, in a structure of arguments."""
    if isinstance(structure, _traced.ValueRef):
        yield structure
    elif isinstance(structure, dict):
        yield from _references(list(structure.values()))
    elif isinstance(structure, slice):
        yield from _references([structure.start, structure.stop, structure.step])
    elif isinstance(structure, (list, tuple)):
        for item in structure:
            yield from _references(item)


def _names(structure: Any) -> Iterator[str]:
    return (reference.name for reference in _references(structure))


def tell_of_pieces(name: str, refusal: Exception) -> None:
    """Says once for each backend that it gets graphs in pieces."""
    if name not in _told:
        _told.add(name)
        reason = str(refusal).partition("\n")[0]
        tell("fallbacks", f"tenon: the backend '{name}' does not take graphs that call NumPy; it gets torch's calls of them: {reason}")
