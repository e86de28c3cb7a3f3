"""Graphs as text: code and table."""
from __future__ import annotations

import dataclasses
import keyword
import operator
import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tenon import _tenon, _traced
from tenon._error_handling import Within


def traced(graph: _traced.TracedGraph) -> str:
    """What the log ``graph_code`` prints."""
    return f"TRACED GRAPH\n{shortened(code(graph))}"


def code(graph: _traced.TracedGraph) -> str:
    """The graph as a Python function, which gives what the graph gives: one call a line, with its type, and the user's line behind it."""
    return "\n".join(_Code(graph, {}).lines())


def shortened(text: str) -> str:
    """Code for the eye: of the bytes of large constants only the first."""
    return re.sub(r"b64decode\('([^']{16})[^']{16,}'\)", r"b64decode('\1...')", text)


# What the code itself calls by these names.
_IMPORTS = ("numpy", "torch", "tenon", "math", "base64", "operator")
_TAKEN = {*_IMPORTS, "np", "inf", "nan", "min", "max", "abs", "slice", "bool", "int", "float", "complex", "str"}
NUMBERS = ("int", "float")  # types of Python's numbers
_WORD = r"[A-Za-z_]\w*"
_FUNCTIONS = {"floor_div": "operator.floordiv", "mod": "operator.mod", "min": "min", "max": "max"}  # of symbols, in the text form and in Python
_LONGEST = 1000  # elements of a constant that are written one by one


@dataclasses.dataclass(frozen=True)
class Number:
    """An int that varies: an expression over symbols."""

    text: str

    def symbols(self) -> set[str]:
        """The names of the symbols in it."""
        return set(re.findall(_WORD, self.text)) - set(_FUNCTIONS)

    def code(self, name: Callable[[str], str]) -> str:
        """It as Python; `name` gives the identifier of a symbol."""
        return re.sub(_WORD, lambda word: _FUNCTIONS.get(word[0]) or name(word[0]), self.text)

    def value(self, symbols: dict[str, Any]) -> int:
        """What it comes to."""
        return eval(self.text, {"floor_div": operator.floordiv, "mod": operator.mod}, symbols)


def numbers_in(graph: _traced.TracedGraph) -> list[tuple[str, str, str | None, int]]:
    """The entries of `graph.numbers` whose symbols its calls are made with."""
    used: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, Number):
            used.update(value.symbols())
        elif isinstance(value, _traced.TracedGraph):
            for _, _, args, kwargs, *_ in value.calls:
                look([args, kwargs])
        elif isinstance(value, slice):
            look([value.start, value.stop, value.step])
        elif isinstance(value, dict):
            look(list(value.values()))
        elif type(value) in (list, tuple):
            for item in value:
                look(item)

    look(graph)
    return [entry for entry in graph.numbers if entry[0] in used]


class _Code:
    """A function for a graph, or for a branch within `outer`, whose names it sees."""

    def __init__(self, graph: _traced.TracedGraph, outer: dict[str, str]) -> None:
        self._graph = graph
        self._names = dict(outer)
        self._taken = _TAKEN | set(outer.values())

    def lines(self, nested: bool = False) -> list[str]:
        graph = self._graph
        # A branch calls its operands as the function around it does.
        numbers = [] if nested else numbers_in(graph)
        given = [f'{self._name(symbol, new=True, wish=words)}: "int"' for symbol, words, of_input, _ in numbers if of_input is None]
        parameters = ", ".join(given + [f'{self._name(name, new=not nested)}: "{_with_device(text)}"' for name, text, *_ in graph.inputs])
        sizes = [(symbol, self._name(of_input), dimension) for symbol, _, of_input, dimension in numbers if of_input is not None]
        body = [f"{self._name(symbol, new=True)} = {name}.shape[{dimension}]" for symbol, name, dimension in sizes]
        body += [f"{self._name(copy.name, new=True)} = {self._callable(function)}({self._name(name)})" for copy, name, function in graph.copies]
        for index, call in enumerate(graph.calls):
            body += self._call(graph.op_names[index], *call)
        leaving = leaving_values(graph)
        body.append(f"return ({', '.join(map(self._show, leaving))}{',' if len(leaving) == 1 else ''})")
        body += [f"# afterwards {self._name(name)} takes {self._show(value)}" for name, value in graph.updates]
        imports = [] if nested else _imports("\n".join(body))
        return [f"def {identifier(graph.name)}({parameters}):", *(f"    {line}" for line in [*imports, *body])]

    def _name(self, name: str, new: bool = False, wish: str = "") -> str:
        """The identifier of a value. A value that a call writes has one name before and after."""
        if not new and name in self._names:
            return self._names[name]
        wish = made = _readable(wish or name)
        tries = 1
        while made in self._taken:
            tries += 1
            made = f"{wish}_{tries}"
        self._taken.add(made)
        self._names[name] = made
        return made

    def _call(self, op_name: str, results: Any, target: Callable, args: tuple, kwargs: dict, types: tuple, location: tuple) -> list[str]:
        lines = []
        for one in args:
            if isinstance(one, _traced.TracedGraph):
                lines += _Code(one, self._names).lines(nested=True)
        call = self._expression(op_name, target, args, kwargs)
        pattern = self._pattern(results)
        if isinstance(results, _traced.ValueRef):
            pattern += f': "{types[0]}"' if types else ""
        return [*lines, f"{pattern} = {call}{_comment(location)}" if pattern else f"{call}{_comment(location)}"]

    def _pattern(self, results: Any) -> str:
        """What an assignment takes the results to; nothing where there are none."""
        if isinstance(results, _traced.ValueRef):
            return self._name(results.name)
        if not isinstance(results, (list, tuple)) or not _names(results):
            return ""
        inside = ", ".join(self._pattern(one) or "_" for one in results)
        return f"({inside},)" if len(results) == 1 else f"({inside})"

    def _expression(self, op_name: str, target: Callable, args: tuple, kwargs: dict) -> str:
        name = getattr(target, "__name__", "")
        of_array = getattr(target, "__objclass__", None) is np.ndarray or op_name.startswith("numpy.ndarray.")
        if name == "__get__" and hasattr(target, "__self__"):
            return f"{self._show(args[0])}.{target.__self__.__name__}"
        if of_array and not isinstance(target, Within) and args and isinstance(args[0], _traced.ValueRef):  # a scalar has its own method
            return f"{self._show(args[0])}.{name}({self._arguments(args[1:], kwargs)})"
        return f"{self._callable(target, op_name)}({self._arguments(args, kwargs)})"

    def _callable(self, target: Callable, op_name: str = "") -> str:
        if isinstance(target, Within):
            return f"tenon._error_handling.Within({self._callable(target.target, op_name)}, {target.modes!r})"
        module, qualified = getattr(target, "__module__", None) or "", getattr(target, "__qualname__", None) or ""
        if op_name.startswith("builtins."):
            return op_name.partition(".")[2]
        for name in (op_name, f"{module}.{qualified}", f"{module}.{getattr(target, '__name__', '')}"):
            if _leads_to(name, target):
                return name
        return op_name or identifier(getattr(target, "__name__", "function"))

    def _arguments(self, args: tuple, kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self._show, args), *(f"{key}={self._show(value)}" for key, value in kwargs.items())])

    def _show(self, value: Any) -> str:
        if isinstance(value, _traced.ValueRef):
            return self._name(value.name)
        if isinstance(value, Number):
            return value.code(self._name)
        if type(value) in (list, tuple):
            inside = ", ".join(map(self._show, value))
            return f"[{inside}]" if type(value) is list else f"({inside}{',' if len(value) == 1 else ''})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self._show(key)}: {self._show(item)}" for key, item in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({self._show(value.start)}, {self._show(value.stop)}, {self._show(value.step)})"
        return _constant(value)


def _constant(value: Any) -> str:
    """An expression of a value that the graph does not compute."""
    if isinstance(value, _traced.TracedGraph):
        return identifier(value.name)
    if isinstance(value, np.ndarray):
        return _array(value)
    if type(value).__module__.partition(".")[0] == "torch":
        if hasattr(value, "untyped_storage"):
            return _tensor(value)
        return f"torch.{value!r}" if type(value).__name__ == "device" else repr(value)
    if isinstance(value, np.dtype):
        return f"numpy.dtype({value.str!r})"
    if isinstance(value, type):
        return value.__name__ if value.__module__ == "builtins" else f"{value.__module__}.{value.__qualname__}"
    return show(value)


def _array(value: np.ndarray) -> str:
    dtype = f"numpy.dtype({value.dtype.str!r})"
    if value.size <= _LONGEST:
        return f"numpy.array({value.tolist()!r}, {dtype}).reshape({value.shape!r})"
    import base64

    text = base64.b64encode(value.tobytes()).decode()
    return f"numpy.frombuffer(base64.b64decode({text!r}), {dtype}).reshape({value.shape!r}).copy()"


def _tensor(value: Any) -> str:
    import torch

    value = value.detach()
    if value.numel() <= _LONGEST:
        return f"torch.tensor({value.tolist()!r}, dtype={value.dtype}).reshape({tuple(value.shape)!r})"
    return f"torch.from_numpy({_array(value.contiguous().view(torch.uint8).numpy())}).view({value.dtype}).reshape({tuple(value.shape)!r})"


def _with_device(text: str) -> str:
    """A type in the words of the text form: dtype, sizes, strides where they are not dense; and the device, which the text form leaves out for the CPU."""
    return text if " on " in text or text in NUMBERS else f"{text} on cpu"


def _imports(body: str) -> list[str]:
    lines = [f"import {name}" for name in _IMPORTS if re.search(rf"\b{name}\.", body)]
    if re.search(r"\bnp\.", body):
        lines.append("import numpy as np")
    if re.search(r"\b(inf|nan)\b", body):
        lines.append("from math import inf, nan")
    if "tenon._" in body:
        lines += [f"import {module}" for module in sorted(set(re.findall(r"\btenon\._\w+", body)))]
    return lines


def _leads_to(name: str, target: Callable) -> bool:
    """Whether a dotted name that begins with a module that the code imports is the callable."""
    first, *rest = name.split(".")
    if first not in ("numpy", "torch", "tenon") or not rest:
        return False
    found: Any = __import__(first)
    for part in rest:
        found = getattr(found, part, None)
    return found is target or (found is not None and found == target)


def leaving_values(graph: _traced.TracedGraph) -> list[Any]:
    """What a callable for the graph gives: the outputs, then the values of the updates."""
    return [*graph.outputs, *(value for _, value in graph.updates)]


def table(graph: _traced.TracedGraph) -> str:
    """The graph as a table with the columns opcode, name, target, args, kwargs."""
    rows = [("opcode", "name", "target", "args", "kwargs")]
    rows += [("placeholder", name, name, "()", "{}") for name, *_ in graph.inputs]
    rows += [("call_function", copy.name, function.__name__, f"({name},)", "{}") for copy, name, function in graph.copies]
    for index, (results, _, args, kwargs, *_) in enumerate(graph.calls):
        shown = "{" + ", ".join(f"{k!r}: {show(v)}" for k, v in kwargs.items()) + "}"
        rows.append(("call_function", ", ".join(_names(results)), graph.op_names[index], show(tuple(args)), shown))
    leaving = leaving_values(graph)
    rows.append(("output", "output", "output", show((tuple(leaving),)), "{}"))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def show(value: Any) -> str:
    """A value among arguments: a name for what the graph computes, else what Python prints."""
    if isinstance(value, _traced.ValueRef):
        return value.name
    if isinstance(value, _traced.TracedGraph):
        return identifier(value.name)
    if type(value) in (list, tuple):
        inside = ", ".join(map(show, value))
        if type(value) is list:
            return f"[{inside}]"
        return f"({inside}{',' if len(value) == 1 else ''})"
    if isinstance(value, slice):
        return ":".join("" if part is None else show(part) for part in (value.start, value.stop, value.step))
    if type(value).__module__ == _tenon.__name__:
        return "number"  # a stand-in of what Python computed of an element: no call gave it
    return repr(value)


def _names(results: Any) -> list[str]:
    if isinstance(results, _traced.ValueRef):
        return [results.name]
    if isinstance(results, (list, tuple)):
        return [name for one in results for name in _names(one)]
    return []


def _comment(location: tuple) -> str:
    file, line, function, text = location
    if not text:
        return ""
    return f"  # {os.path.basename(file)}:{line} in {function}: {text.splitlines()[0]}"


def _readable(name: str) -> str:
    """The user's name of a value: `self.lin.weight` of what torch keeps in `_modules` and `_parameters`."""
    return identifier(re.sub(r"_?\._(modules|parameters|buffers)_", ".", name))


def identifier(name: str) -> str:
    """A name as Python takes it."""
    made = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "graph"
    return f"_{made}" if made[0].isdigit() or keyword.iskeyword(made) else made
