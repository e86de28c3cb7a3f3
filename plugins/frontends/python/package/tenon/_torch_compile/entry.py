"""``torch.compile(fn, backend="tenon")``: graphs that torch's own frontend captured, compiled by Tenon.

torch.compile turns a program into ``torch.fx`` graphs and finds this function by the entry-point group ``torch_dynamo_backends``. The
code that torch.fx writes for a graph is plain Python over plain torch functions, so it goes through the evaluator like any program: one
catalogue of names serves both roads, and what has no op there is treated as everywhere else.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenon._compile import compile
from tenon._errors import ConfigError

if TYPE_CHECKING:
    import torch


def backend(graph_module: torch.fx.GraphModule, example_inputs: list, *, mode: str | None = None, options: dict[str, Any] | None = None) -> Callable:
    """Compiles a graph of torch.compile. In `options` ``"backend"`` names Tenon's backends; the rest are those of ``tenon.compile``.

    torch.compile guards what its graph assumes, sizes included; a call that Tenon's own guards refuse compiles once more.
    """
    rest = dict(options or {})
    inner = rest.pop("backend", None)
    if inner == "tenon":
        raise ConfigError("options['backend'] names a backend of Tenon; got 'tenon', which is the way here")
    from torch.fx._lazy_graph_module import _LazyGraphModule

    _LazyGraphModule.force_recompile(graph_module)  # else `forward` would write its code at the first call
    compiled = compile(graph_module.forward, backend=inner, mode=mode, options=rest or None)

    def run(*inputs: Any) -> Any:  # a plain function: torch looks behind callables that carry a method's attributes
        return compiled(*inputs)

    return run
