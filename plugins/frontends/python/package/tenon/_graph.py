"""The graph as captured, before any pass: what a backend written in Python gets."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tenon import _by_library, _render, _traced

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

    def forward(self, *inputs: Any) -> tuple:
        """Runs the calls one after the other, unoptimised. Gives the outputs, then the values of the updates."""
        values = self.named_inputs(inputs)
        for call in self._traced.calls:
            self.run_call(call, values)
        return self.leaving(values)

    def named_inputs(self, inputs: tuple) -> dict[str, Any]:
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
        _bind(results, _call(target, _replace(args, values), _replace(kwargs, values)), values)

    def leaving(self, values: dict[str, Any]) -> tuple:
        """What a run gives in the end."""
        return tuple(_replace(_render.leaving_values(self._traced), values))

    def to_fx(self) -> torch.fx.GraphModule:
        """The graph as a ``torch.fx.GraphModule``, for backends written for ``torch.compile``.

        Calls of NumPy stay what they are. A backend that fails on them gets torch's calls alone, in as many graphs as that takes.
        """
        import torch

        self._asked_as_fx = True
        graph = torch.fx.Graph()
        values: dict[str, Any] = {name: graph.placeholder(_render.identifier(name)) for name, *_ in self._traced.inputs}
        for copy, name, function in self._traced.copies:
            values[copy.name] = graph.call_function(function, (values[name],))
        root = torch.nn.Module()
        for results, target, args, kwargs, *_ in self._traced.calls:
            if any(isinstance(argument, _traced.TracedGraph) for argument in args):
                node = _fx_branches(graph, root, args, values)
            else:
                given, named = _fx_constants(graph, root, (tuple(_replace(args, values)), _replace(kwargs, values)))
                node = _fx_call(graph, target, given, named)
            _bind_fx(graph, results, node, values)
        graph.output(tuple(_replace(_render.leaving_values(self._traced), values)))
        return torch.fx.GraphModule(root, graph)

    def __repr__(self) -> str:
        return f"<tenon.Graph {self.name}: {len(self._traced.calls)} calls>"

    def __str__(self) -> str:
        """The code, with what is long of its constants left out."""
        return _render.shortened(self.code())


def python_backend(backend: Callable, traced: _traced.TracedGraph, example_inputs: list) -> Callable:
    """Asks a backend that is a Python function for the callable that runs the graph."""
    graph = Graph(traced)
    try:
        return backend(graph, example_inputs)
    except Exception as refusal:
        if not (graph._asked_as_fx and _by_library.holds_numpy(traced)):
            raise
        _by_library.tell(getattr(backend, "__name__", type(backend).__name__), refusal)
        return _by_library.ByLibrary(graph, backend)


def _call(target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Methods of arrays were called on what stands in for them, or on NumPy scalars, which have their own."""
    if args and isinstance(args[0], (np.ndarray, np.generic)) and not isinstance(args[0], getattr(target, "__objclass__", object)):
        target = getattr(type(args[0]), target.__name__, target)
    return target(*args, **kwargs)


def _replace(structure: Any, values: dict[str, Any]) -> Any:
    """The same nested structure with each reference replaced by its value."""
    if isinstance(structure, _traced.ValueRef):
        return values[structure.name]
    if isinstance(structure, _render.Number):
        return structure.value(values)
    if isinstance(structure, _traced.TracedGraph):  # a branch
        return Graph(structure).forward
    if isinstance(structure, dict):
        return {key: _replace(value, values) for key, value in structure.items()}
    if isinstance(structure, slice):
        return slice(_replace(structure.start, values), _replace(structure.stop, values), _replace(structure.step, values))
    if type(structure) in (list, tuple):
        return type(structure)(_replace(item, values) for item in structure)
    return structure


def _bind(results: Any, given: Any, values: dict[str, Any]) -> None:
    """Names what a call gave."""
    if isinstance(results, _traced.ValueRef):
        values[results.name] = given
    elif isinstance(results, (list, tuple)):
        for one, value in zip(results, given, strict=True):
            _bind(one, value, values)


def _bind_fx(graph: torch.fx.Graph, results: Any, node: Any, values: dict[str, Any]) -> None:
    """Names what a call node gives; parts of a tuple become ``getitem`` nodes."""
    if isinstance(results, _traced.ValueRef):
        values[results.name] = node
    elif isinstance(results, (list, tuple)):
        for index, one in enumerate(results):
            _bind_fx(graph, one, graph.call_function(operator.getitem, (node, index)), values)


def _fx_constants(graph: torch.fx.Graph, root: torch.nn.Module, structure: Any) -> Any:
    """The same nested structure with tensors and arrays as attributes of the module, which fx's code can name."""
    import torch

    def named(value: Any) -> Any:
        if not isinstance(value, (torch.Tensor, np.ndarray)):
            return value
        name = f"constant_{sum(node.op == 'get_attr' for node in graph.nodes)}"
        setattr(root, name, value)
        return graph.get_attr(name)

    return torch.fx.node.map_aggregate(structure, named)


def _fx_branches(graph: torch.fx.Graph, root: torch.nn.Module, args: tuple, values: dict[str, Any]) -> torch.fx.Node:
    """``tenon.cond`` as torch's own control op: the branches become submodules."""
    import torch

    given = []
    for argument in args:
        if isinstance(argument, _traced.TracedGraph):
            name = f"branch_{len(list(root.children()))}"
            root.add_module(name, Graph(argument).to_fx())
            given.append(graph.get_attr(name))
        else:
            given.append(_replace(argument, values))
    return graph.call_function(torch.ops.higher_order.cond, tuple(given))


def _fx_call(graph: torch.fx.Graph, target: Callable, args: tuple, kwargs: dict[str, Any]) -> torch.fx.Node:
    """A call node; attributes and special methods become what fx can write down: ``getattr`` and operators."""
    name = getattr(target, "__name__", "")
    if name == "__get__" and hasattr(target, "__self__"):
        return graph.call_function(getattr, (args[0], target.__self__.__name__))
    if name.startswith("__r") and hasattr(operator, f"__{name[3:]}") and len(args) == 2:
        return graph.call_function(getattr(operator, f"__{name[3:]}"), (args[1], args[0]))
    if name.startswith("__") and name.endswith("__") and hasattr(operator, name):
        target = getattr(operator, name.strip("_"), getattr(operator, name))
    return graph.call_function(target, args, kwargs)
