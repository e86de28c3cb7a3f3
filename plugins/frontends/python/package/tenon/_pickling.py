"""How compiled functions are copied and pickled: as what they wrap, never with machine code."""
from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from typing import Any

from tenon import _tenon
from tenon._compile import compiled_function


def shallow_copy(compiled: _tenon.CompiledFunction) -> Callable:
    """A compiled function of the same callable, which compiles for itself."""
    return _with_attributes(_compiled(_callable_of(compiled), compiled._tenon_settings), _own_attributes(compiled))


def deep_copy(compiled: _tenon.CompiledFunction, memo: dict) -> Callable:
    """A compiled function of a deep copy of the callable: of a module or bound method its own, of a function the function itself."""
    fn = copy.deepcopy(_callable_of(compiled), memo)
    if id(compiled) in memo:  # the callable holds what was compiled of it
        return memo[id(compiled)]
    made = memo[id(compiled)] = _compiled(fn, compiled._tenon_settings)
    return _with_attributes(made, copy.deepcopy(_own_attributes(compiled), memo))


def reduce(compiled: _tenon.CompiledFunction) -> str | tuple:
    """What pickle writes: the name where that leads to the object, else what to compile, with which settings."""
    fn = _callable_of(compiled)
    named = _named_like(compiled)
    if named is compiled:
        return compiled.__qualname__
    state = _own_attributes(compiled) or None
    decorated = isinstance(named, _tenon.CompiledFunction) and named.__wrapped__ is fn  # then the name of the function leads there
    make, made_of = (_compiled_again, named) if decorated else (_compiled, fn)
    # The wrapped object may have a __setstate__, which the compiled one would seem to have.
    return make, (made_of, compiled._tenon_settings), state, None, None, _with_attributes


def _callable_of(compiled: _tenon.CompiledFunction) -> Callable:
    return _tenon.CompiledFunction.__getattribute__(compiled, "__wrapped__")


def _compiled(fn: Callable, settings: dict[str, Any]) -> Callable:
    return compiled_function(fn, settings)


def _compiled_again(compiled: Callable, settings: dict[str, Any]) -> Callable:
    return compiled_function(compiled.__wrapped__, settings)


def _named_like(compiled: _tenon.CompiledFunction) -> Any:
    """The object to which module and qualified name lead; None where they lead nowhere."""
    found: Any = sys.modules.get(getattr(compiled, "__module__", None) or "")
    for part in (getattr(compiled, "__qualname__", None) or "<none>").split("."):
        found = getattr(found, part, None)
    return found


def _own_attributes(compiled: _tenon.CompiledFunction) -> dict[str, Any]:
    """The attributes that were set on the compiled function itself."""
    theirs = getattr(_callable_of(compiled), "__dict__", {})
    copied = {*functools.WRAPPER_ASSIGNMENTS, "__wrapped__"}
    return {name: value for name, value in vars(compiled).items() if name not in copied and not (name in theirs and theirs[name] is value)}


def _with_attributes(compiled: Callable, attributes: dict[str, Any]) -> Callable:
    vars(compiled).update(attributes)
    return compiled
