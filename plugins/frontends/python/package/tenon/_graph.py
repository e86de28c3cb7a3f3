"""The graph as captured, before any pass: what a backend written in Python gets."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tenon import _render, _traced
from tenon._messages import tell_once
from tenon._torch_compile import by_library
from tenon._torch_compile.told import suppresses_errors

if TYPE_CHECKING:
    import torch


class Graph:
    """A captured graph.

    Calls are those that the program made, in order, on named values; where they write into an input they are given a copy of it. A graph whose
    results have gradients, or that computes some, is one of ops: a call of torch for each. Inputs and outputs are flat.
    """

    def __init__(self, traced: _traced.TracedGraph) -> None:
        self._traced = traced
        self._asked_as_fx = False

    @property
    def traced(self) -> _traced.TracedGraph:
        return self._traced

    @property
    def name(self) -> str:
        """The function that was captured."""
        return self._traced.name

    @property
    def is_backward(self) -> bool:
        """Whether it computes the gradients of another graph: from what that keeps, and a gradient for each of its results."""
        return self._traced.is_backward

    @property
    def op_names(self) -> list[str]:
        """The callables of torch and NumPy in the order of the calls, as ``torch.sin``."""
        return [name for name, call in zip(self._traced.op_names, self._traced.calls) if not set(call[4]) & set(_render.NUMBERS)]

    def code(self) -> str:
        """The graph as Python code, with types and the user's lines."""
        return _render.code(self._traced)

    def print_tabular(self) -> None:
        """Prints a table with the columns opcode, name, target, args, kwargs to ``sys.stdout``."""
        print(_render.table(self._traced))

    def tir(self) -> str:
        """The graph in Tenon's text form."""
        return self._traced.text()

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        """Runs the calls one after the other, unoptimised. Gives the outputs, then the values of the updates."""
        values = self.named_inputs(inputs)
        for call in self._traced.calls:
            self.run_call(call, values)
        return self.leaving(values)

    def named_inputs(self, inputs: tuple[Any, ...]) -> dict[str, Any]:
        """The values by name with which a run begins."""
        numbers = _render.numbers_in(self._traced)
        names = [symbol for symbol, _, of_input, _ in numbers if of_input is None] + [name for name, *_ in self._traced.inputs]
        values = dict(zip(names, inputs, strict=True))
        values.update({symbol: values[of_input].shape[dimension] for symbol, _, of_input, dimension in numbers if of_input is not None})
        for copy, name, function in self._traced.copies:
            values[copy.name] = function(values[name])
        return values

    def run_call(self, call: tuple, values: dict[str, Any]) -> None:
        """Makes one of the traced calls, and names what it gives."""
        results, target, args, kwargs, *_ = call
        _bind(results, _call(target, replaced(args, values), replaced(kwargs, values)), values)

    def leaving(self, values: dict[str, Any]) -> tuple[Any, ...]:
        """What a run gives in the end."""
        return tuple(replaced(_render.leaving_values(self._traced), values))

    def to_fx(self) -> torch.fx.GraphModule:
        """The graph as a ``torch.fx.GraphModule`` of its own; what a backend gets becomes one by itself when it is touched.

        Calls of NumPy stay what they are. A backend that fails on them gets torch's calls alone, in as many graphs as that takes.
        """
        from tenon._torch_compile.fx import module_of

        self._asked_as_fx = True
        return module_of(self)

    @property
    def tenon_graph(self) -> Graph:
        """This graph: what a backend gets has it by that name, whatever it is."""
        return self

    def for_backend(self, example_inputs: list[Any]) -> Graph | torch.fx.GraphModule:
        """What a backend gets: an FX module where the graph is of torch, else itself."""
        torch = sys.modules.get("torch")
        if torch is None or not (any(isinstance(one, torch.Tensor) for one in example_inputs) or any(name.startswith("torch.") for name in self._traced.op_names)):
            return self
        from tenon._torch_compile.captured_module import CapturedModule

        return CapturedModule(self)

    def __repr__(self) -> str:
        return f"<tenon.Graph {self.name}: {len(self._traced.calls)} calls>"

    def __str__(self) -> str:
        """The code, with what is long of its constants left out."""
        return _render.shortened(self.code())


def python_backend(backend: Callable, traced: _traced.TracedGraph, example_inputs: list[Any]) -> Callable:
    """Asks a backend that is a Python function for the callable that runs the graph."""
    graph = Graph(traced)
    try:
        made = backend(graph.for_backend(example_inputs), example_inputs)
        if not callable(made):
            raise TypeError(f"it gave {'None' if made is None else type(made).__name__}, not a callable; to run the graph as it is, give its forward: return graph.forward")
        return made
    except Exception as refusal:
        if suppresses_errors():
            tell_once("fallbacks", f"a backend failed on {graph.name}, which runs call by call, as torch._dynamo.config.suppress_errors asks: {refusal!r}")
            return graph.forward
        if not (graph._asked_as_fx and by_library.holds_numpy(traced)):
            raise
        by_library.tell_of_pieces(getattr(backend, "__name__", type(backend).__name__), refusal)
        return by_library.ByLibrary(graph, backend)


def _call(target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Methods of arrays were called on what stands in for them, or on NumPy scalars, which have their own."""
    if args and isinstance(args[0], (np.ndarray, np.generic)) and not isinstance(args[0], getattr(target, "__objclass__", object)):
        target = getattr(type(args[0]), target.__name__, target)
    return target(*args, **kwargs)


def replaced(structure: Any, values: dict[str, Any]) -> Any:
    """The same nested structure with each reference replaced by its value."""
    if isinstance(structure, _traced.ValueRef):
        return values[structure.name]
    if isinstance(structure, _render.Number):
        return structure.value(values)
    if isinstance(structure, _traced.TracedGraph):  # a branch
        return Graph(structure).forward
    if isinstance(structure, dict):
        return {key: replaced(value, values) for key, value in structure.items()}
    if isinstance(structure, slice):
        return slice(replaced(structure.start, values), replaced(structure.stop, values), replaced(structure.step, values))
    if type(structure) in (list, tuple):
        return type(structure)(replaced(item, values) for item in structure)
    return structure


def _bind(results: Any, given: Any, values: dict[str, Any]) -> None:
    """Names what a call gave."""
    if isinstance(results, _traced.ValueRef):
        values[results.name] = given
    elif isinstance(results, (list, tuple)):
        for one, value in zip(results, given, strict=True):
            _bind(one, value, values)
