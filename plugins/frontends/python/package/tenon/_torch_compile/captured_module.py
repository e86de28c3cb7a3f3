"""What a backend written for torch.compile gets: a ``torch.fx.GraphModule``, which costs nothing until it is looked into."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from tenon._graph import Graph


# What a graph of Tenon has and a module of FX has not: it is the graph's on both.
_OF_GRAPH = ("is_backward", "named_inputs", "op_names", "print_tabular", "tir", "to_fx")


class CapturedModule(torch.fx.GraphModule):
    """A captured graph before it is looked into. At the first touch of what FX has it becomes the module of FX that it stands for.

    ``tenon_graph`` is the graph as Tenon has it, before and after; so is what only that graph has (``to_fx``, ``op_names``).
    """

    tenon_graph: Graph

    def __new__(cls, graph: Graph) -> CapturedModule:
        return object.__new__(cls)  # FX makes a class for each module: it comes with the graph

    def __init__(self, graph: Graph) -> None:
        object.__setattr__(self, "tenon_graph", graph)

    def __getattribute__(self, name: str) -> Any:
        if name in ("tenon_graph", "__class__"):
            return object.__getattribute__(self, name)
        if name in _OF_GRAPH:
            return getattr(object.__getattribute__(self, "tenon_graph"), name)
        return getattr(_become_fx(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_become_fx(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_become_fx(self), name)


def _become_fx(module: CapturedModule) -> torch.fx.GraphModule:
    """Turns the object into a module of FX, with the class that FX has made for it."""
    graph = object.__getattribute__(module, "tenon_graph")
    try:
        made = graph.to_fx()
    except AttributeError as failure:  # Python would ask __getattr__ then, and so come here again
        raise RuntimeError(f"the graph cannot be written as a module of FX: {failure}") from failure
    type(made).tenon_graph = graph  # in the class: copies and pickles of the module are FX's own
    for name in _OF_GRAPH:
        setattr(type(made), name, property(operator.attrgetter(f"tenon_graph.{name}")))
    object.__setattr__(module, "__class__", type(made))
    vars(module).clear()
    vars(module).update(vars(made))
    module.graph.owning_module = module
    return module
