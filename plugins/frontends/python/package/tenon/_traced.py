"""A captured graph as Python sees it: what the extension module makes of one, for logs, reports, exports and backends in Python."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any


class ValueRef:
    """A value of a traced graph, by name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


@dataclasses.dataclass(eq=False, repr=False)
class TracedGraph:
    """The calls of one capture. Tensors among arguments, results and outputs are :class:`ValueRef`.

    inputs : (name, type, source) of each
    copies : (copy, name of the input, function that copies) for each input that the calls write
    numbers : (symbol, the program's name, input of which it is a size or None, dimension)
    calls : (results, callable, args, kwargs, types of the results, location), in order
    updates : (name of the input, its new value)
    is_backward : whether it computes the gradients of another graph
    """

    name: str
    inputs: list[tuple[str, str, str]]
    copies: list[tuple[ValueRef, str, Callable]]
    numbers: list[tuple[str, str, str | None, int]]
    calls: list[tuple[Any, Callable, tuple, dict[str, Any], tuple[str, ...], tuple[str, int, str, str]]]
    outputs: list[Any]
    updates: list[tuple[str, Any]]
    op_names: list[str]
    _text: str
    is_backward: bool = False

    def text(self) -> str:
        """The graph in Tenon's text form."""
        return self._text
