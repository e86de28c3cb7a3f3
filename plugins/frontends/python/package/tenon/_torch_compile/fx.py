"""Captured graphs as ``torch.fx`` has them, as dynamo writes them down: operators and methods, the user's lines, and what each value looks like."""
from __future__ import annotations

import contextlib
import functools
import operator
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from tenon import _render, _traced
from tenon._graph import Graph, replaced

# Methods that a program rather writes as operators; torch names them alike for both.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "true_divide": operator.truediv, "matmul": operator.matmul,
    "pow": operator.pow, "floor_divide": operator.floordiv, "remainder": operator.mod, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "eq": operator.eq, "ne": operator.ne, "neg": operator.neg,
}  # fmt: skip
_TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d, ]*)\](?:\{(?P<strides>[\d, ]*)\})?")
_DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "c64": torch.complex64, "c128": torch.complex128,
}  # fmt: skip


def module_of(graph: Graph) -> torch.fx.GraphModule:
    """The graph as a module of FX that gives what the graph gives."""
    return _Translation(graph).module()


class _Translation:
    """One graph on its way into FX."""

    def __init__(self, graph: Graph) -> None:
        self._traced = graph.traced
        self._graph = torch.fx.Graph()
        self._root = torch.nn.Module()
        self._values: dict[str, Any] = {}
        self._looks = FakeTensorMode(allow_non_fake_inputs=True)

    def module(self) -> torch.fx.GraphModule:
        traced = self._traced
        for name, text, *_ in traced.inputs:
            self._values[name] = self._graph.placeholder(_render.identifier(name))
            self._describe(self._values[name], text)
        for copy, name, function in traced.copies:
            self._values[copy.name] = self._graph.call_function(function, (self._values[name],))
        for results, target, args, kwargs, _, location in traced.calls:
            node = self._branches(args) if any(isinstance(one, _traced.TracedGraph) for one in args) else self._call(target, args, kwargs)
            file, number, caller, text = location
            for one in (node, *self._bind(results, node)):
                one.stack_trace = f'  File "{file}", line {number}, in {caller}\n    {text}\n'
                self._look(one)
        self._graph.output(tuple(self._given(_render.leaving_values(traced))))
        return torch.fx.GraphModule(self._root, self._graph)

    def _given(self, structure: Any) -> Any:
        return replaced(structure, self._values)

    def _call(self, target: Callable, args: tuple, kwargs: dict[str, Any]) -> torch.fx.Node:
        given, named = torch.fx.node.map_aggregate((tuple(self._given(args)), self._given(kwargs)), self._attribute)
        return call_node(self._graph, target, given, named)

    def _attribute(self, value: Any) -> Any:
        """Tensors and arrays become attributes of the module, which FX's code can name."""
        if not isinstance(value, (torch.Tensor, np.ndarray)):
            return value
        name = f"constant_{sum(node.op == 'get_attr' for node in self._graph.nodes)}"
        setattr(self._root, name, value)
        return self._graph.get_attr(name)

    def _branches(self, args: tuple) -> torch.fx.Node:
        """``tenon.cond`` as torch's own control op: the branches become submodules."""
        given = []
        for argument in args:
            if isinstance(argument, _traced.TracedGraph):
                name = f"branch_{len(list(self._root.children()))}"
                self._root.add_module(name, module_of(Graph(argument)))
                given.append(self._graph.get_attr(name))
            else:
                given.append(self._given(argument))
        return self._graph.call_function(torch.ops.higher_order.cond, tuple(given))

    def _bind(self, results: Any, node: torch.fx.Node) -> Iterator[torch.fx.Node]:
        """Names what a call gives; parts of a tuple become ``getitem`` nodes, which are given."""
        if isinstance(results, _traced.ValueRef):
            self._values[results.name] = node
        elif isinstance(results, (list, tuple)):
            for index, one in enumerate(results):
                part = self._graph.call_function(operator.getitem, (node, index))
                yield part
                yield from self._bind(one, part)

    def _describe(self, node: torch.fx.Node, text: str) -> None:
        """What dynamo tells of an input: a tensor without memory, of its dtype, sizes, strides and device."""
        written, _, device = text.partition(" on ")
        found = _TYPE.fullmatch(written)
        if found is None or found["dtype"] not in _DTYPES:
            return
        shape = [int(size) for size in found["shape"].split(",") if size.strip()]
        strides = None if found["strides"] is None else [int(step) for step in found["strides"].split(",") if step.strip()]
        dtype = _DTYPES[found["dtype"]]
        like = torch.empty(shape, dtype=dtype, device="meta") if strides is None else torch.empty_strided(shape, strides, dtype=dtype, device="meta")
        node.meta["example_value"] = FakeTensor(self._looks, like, _device_of(device))

    def _look(self, node: torch.fx.Node) -> None:
        """The same of what a call gives, as torch tells it of such tensors. What hangs on elements, or calls functions of the program, has none."""
        arguments = [one for one in node.all_input_nodes if one.op != "get_attr"]
        if not _is_of_torch(node) or len(arguments) < len(node.all_input_nodes) or any("example_value" not in one.meta for one in arguments):
            return
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: one.meta["example_value"])
        with contextlib.suppress(Exception), self._looks, torch.no_grad():
            target: Any = node.target
            given = getattr(args[0], target)(*args[1:], **kwargs) if node.op == "call_method" else target(*args, **kwargs)
            node.meta["example_value"] = given


def _is_of_torch(node: torch.fx.Node) -> bool:
    """Whether a call runs nothing but torch: it may be made once more, on tensors without memory."""
    module = str(getattr(node.target, "__module__", None) or "torch").partition(".")[0]
    return node.op == "call_method" or module in ("torch", "_operator", "math", "builtins") or node.target.__module__ == "tenon._ops"


@functools.cache
def _names_of_methods() -> dict[Callable, str]:
    """What torch.Tensor calls its methods: some are functions around others, with the names of these."""
    return {getattr(torch.Tensor, name): name for name in sorted(dir(torch.Tensor)) if isinstance(getattr(torch.Tensor, name), (types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType))}


def _device_of(text: str) -> torch.device:
    """What torch calls a device of a graph's text, which has DLPack's number of the kind ("device2:0"); the CPU where the text has none."""
    found = re.fullmatch(r"device(\d+):(\d+)", text)
    kinds = {"2": "cuda", "10": "cuda", "8": "mps", "12": torch._C._get_privateuse1_backend_name(), "14": "xpu"}
    return torch.device(f"{kinds[found[1]]}:{found[2]}" if found else text or "cpu")


def call_node(graph: torch.fx.Graph, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.fx.Node:
    """A call as a program would write it: attributes, operators and methods of tensors as such."""
    name: str = _names_of_methods().get(target, getattr(target, "__name__", ""))
    if name == "__get__" and hasattr(target, "__self__"):
        return graph.call_function(getattr, (args[0], target.__self__.__name__))
    if name.startswith("__r") and hasattr(operator, f"__{name[3:]}") and len(args) == 2:
        return graph.call_function(getattr(operator, f"__{name[3:]}"), (args[1], args[0]))
    if name.startswith("__") and name.endswith("__") and hasattr(operator, name):
        return graph.call_function(getattr(operator, name.strip("_"), getattr(operator, name)), args, kwargs)
    if args and isinstance(args[0], torch.fx.Node) and target in _names_of_methods():
        if name in _OPERATORS and not kwargs and len(args) == (1 if name == "neg" else 2):
            return graph.call_function(_OPERATORS[name], args)
        return graph.call_method(name, args, kwargs)
    if getattr(torch._C._VariableFunctions, name, None) == target and getattr(torch, name, target) != target:
        target = getattr(torch.ops.aten, name)  # FX would write torch's function around it
    return graph.call_function(target, args, kwargs)
