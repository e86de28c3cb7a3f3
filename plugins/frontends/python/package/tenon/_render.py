"""Graphs as text: code and table."""
from __future__ import annotations

import os
from typing import Any

from tenon import _tenon


def traced(graph: _tenon.TracedGraph) -> str:
    """What the log ``graph_code`` prints."""
    return f"TRACED GRAPH\n{code(graph)}"


def code(graph: _tenon.TracedGraph) -> str:
    """The graph as a Python function: one call a line, with its type, and the user's line behind it."""
    parameters = ", ".join(f"{name}: {type_text}" for name, type_text, *_ in graph.inputs)
    lines = [f"def {identifier(graph.name)}({parameters}):"]
    lines += [f"    {copy.name} = {function.__name__}({name})" for copy, name, function in graph.copies]
    for index, (results, _, args, kwargs, types, location) in enumerate(graph.calls):
        call = f"{graph.op_names[index]}({_arguments(args, kwargs)})"
        names = _names(results)
        lines += [f"    {line}" for one in args if isinstance(one, _tenon.TracedGraph) for line in code(one).splitlines()]
        typed = ", ".join(names) + (f": {types[0]}" if len(names) == 1 and types else "")
        lines.append(f"    {typed + ' = ' if typed else ''}{call}{_comment(location)}")
    leaving = leaving_values(graph)
    lines.append(f"    return ({', '.join(map(show, leaving))}{',' if len(leaving) == 1 else ''})")
    for name, value in graph.updates:
        lines.append(f"    # afterwards {name} takes {show(value)}")
    return "\n".join(lines)


def leaving_values(graph: _tenon.TracedGraph) -> list[Any]:
    """What a callable for the graph gives: the outputs, then the values of the updates."""
    return [*graph.outputs, *(value for _, value in graph.updates)]


def table(graph: _tenon.TracedGraph) -> str:
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
    if isinstance(value, _tenon.ValueRef):
        return value.name
    if isinstance(value, _tenon.TracedGraph):
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


def _arguments(args: tuple, kwargs: dict[str, Any]) -> str:
    return ", ".join([*map(show, args), *(f"{key}={show(value)}" for key, value in kwargs.items())])


def _names(results: Any) -> list[str]:
    if isinstance(results, _tenon.ValueRef):
        return [results.name]
    if isinstance(results, (list, tuple)):
        return [name for one in results for name in _names(one)]
    return []


def _comment(location: tuple) -> str:
    file, line, function, text = location
    if not text:
        return ""
    return f"  # {os.path.basename(file)}:{line} in {function}: {text}"


def identifier(name: str) -> str:
    """A name as Python takes it."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "graph"
