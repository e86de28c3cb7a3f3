"""Functions that a program calls to talk to the compiler while it is captured."""
from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from tenon._errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


@overload
def disable(fn: F) -> F: ...
@overload
def disable(fn: None = None) -> Callable[[F], F]: ...
def disable(fn: Any = None) -> Any:
    """Gives a function that always runs as plain Python, also where compiled code calls it; a decorator, bare or as ``disable()``.

    A module is marked itself, and given back: its ``forward`` then always runs as plain Python.
    """
    if fn is None:
        return disable
    if isinstance(fn, type) or not callable(fn):
        raise ConfigError(f"tenon.disable takes a function, a method or a module, got {fn!r}")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(fn, torch.nn.Module):
        fn.forward = disable(fn.forward)
        return fn

    @functools.wraps(fn)
    def uncompiled(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    uncompiled._tenon_disabled = True  # type: ignore[attr-defined]  # the evaluator looks for it
    return uncompiled


def allow_in_graph(fn: F) -> F:
    """Marks a function that becomes one node of a graph, whatever it does inside; also a decorator. Gives it back.

    What it gives must be tensors whose dtypes and sizes follow from those of its arguments, and it may write to nothing. It is called by
    Python on every run, and once with tensors without elements while the program is captured. What does not fit ends the graph there.
    """
    if not isinstance(fn, types.FunctionType):
        raise ConfigError(f"tenon.allow_in_graph takes a function, got {fn!r}")
    fn._tenon_in_graph = True  # type: ignore[attr-defined]  # the recorder looks for it
    return fn


def graph_break() -> None:
    """Ends the current graph here. Does nothing outside of a capture."""


def is_compiling() -> bool:
    """True while the program is captured."""
    return False


def cond(pred: Any, true_fn: Callable[..., R], false_fn: Callable[..., R], operands: Sequence[Any] = ()) -> R:
    """Calls ``true_fn(*operands)`` if ``pred`` holds, else ``false_fn(*operands)``; where `pred` is a tensor the graph keeps both.

    Parameters
    ----------
    pred
        A bool, or a tensor with one element.
    true_fn, false_fn
        Functions of the operands, and of what they see around them, whose results have the same structure, dtypes and shapes. In a graph
        they may write to nothing older, and must give new tensors (``x.clone()``, not ``x``); what does not fit ends the graph there.
    operands
        Arguments of the branch that is taken.
    """
    return true_fn(*operands) if pred else false_fn(*operands)


cond._tenon_cond = True  # type: ignore[attr-defined]
graph_break._tenon_graph_break = True  # type: ignore[attr-defined]
is_compiling._tenon_is_compiling = True  # type: ignore[attr-defined]
