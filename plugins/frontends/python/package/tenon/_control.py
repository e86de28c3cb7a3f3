"""Functions that a program calls to talk to the compiler while it is captured."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def disable(fn: F) -> F:
    """Gives a function that always runs as plain Python, also where compiled code calls it."""

    @functools.wraps(fn)
    def uncompiled(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    uncompiled._tenon_disabled = True  # type: ignore[attr-defined]  # the evaluator looks for it
    return uncompiled  # type: ignore[return-value]


def graph_break() -> None:
    """Ends the current graph here. Does nothing outside of a capture."""


def is_compiling() -> bool:
    """True while the program is captured."""
    return False


def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: Sequence[Any] = ()) -> Any:
    """Calls ``true_fn(*operands)`` if ``pred`` holds, else ``false_fn(*operands)``.

    Parameters
    ----------
    pred
        A bool, or a tensor with one element.
    true_fn, false_fn
        Functions of the operands, without side effects, whose results have the same structure, dtypes and shapes.
    operands
        Arguments of the branch that is taken.
    """
    return true_fn(*operands) if pred else false_fn(*operands)


graph_break._tenon_graph_break = True  # type: ignore[attr-defined]
is_compiling._tenon_is_compiling = True  # type: ignore[attr-defined]
