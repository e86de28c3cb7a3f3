"""NumPy's handling of floating-point errors around calls of graphs and functions that were written under `np.errstate`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Within:
    """A callable of NumPy that is called inside of `np.errstate` with these modes."""

    def __init__(self, target: Callable[..., Any], modes: dict[str, Any]) -> None:
        self.target = target
        self.modes = modes
        self.__name__ = target.__name__
        self.__module__ = getattr(target, "__module__", None) or "numpy"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        target = self.target
        if args and isinstance(args[0], np.generic) and getattr(target, "__objclass__", None) is np.ndarray:
            target = getattr(type(args[0]), target.__name__)
        with np.errstate(**self.modes):
            return target(*args, **kwargs)


def enter(state: Any) -> None:
    """Enters an `np.errstate` that a graph has taken for entered."""
    state._token = None
    state.__enter__()


def call_decorated(state: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function that is decorated with an `np.errstate` does."""
    with np.errstate(call=state._call, all=state._all, divide=state._divide, over=state._over, under=state._under, invalid=state._invalid):
        return function(*args, **kwargs)
