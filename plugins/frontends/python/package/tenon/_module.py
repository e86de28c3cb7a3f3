"""Compiled modules: the module itself, with another ``__call__``."""
from __future__ import annotations

import copy
import weakref
from typing import Any

import torch

from tenon import _tenon


def optimized_module(module: torch.nn.Module, settings: dict[str, Any]) -> torch.nn.Module:
    """Gives a module that shares everything with `module` (parameters, hooks, mode, attributes) and runs compiled."""
    kind: Any = type(module)
    wrapper: torch.nn.Module = object.__new__(_class_for(kind))
    object.__setattr__(wrapper, "__dict__", module.__dict__)
    object.__setattr__(wrapper, "_tenon_module", module)
    object.__setattr__(wrapper, "_tenon_settings", settings)
    object.__setattr__(wrapper, "_tenon_call", _tenon.CompiledFunction(module, settings))
    return wrapper


def compiled_in_place(module: torch.nn.Module, settings: dict[str, Any]) -> torch.nn.Module:
    """Makes calls of the module run compiled. torch keeps such a callable out of copies and pickles."""
    module._compiled_call_impl = _tenon.CompiledFunction(module._call_impl, settings)
    return module


_classes: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()


def _class_for(module_class: Any) -> Any:
    """The class of compiled modules of a class: one for all of them, as long as there is one."""
    known = _classes.get(module_class)
    compiled_class = known() if known else None
    if compiled_class is None:
        compiled_class = _make_class(module_class)
        _classes[module_class] = weakref.ref(compiled_class)
    return compiled_class


def _make_class(module_class: Any) -> Any:
    """A subclass whose instances share the ``__dict__`` of the module that they wrap; what is Tenon's lies in slots."""

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return self._tenon_call(*args, **kwargs)

    def reduce(self, protocol: int) -> tuple:
        return optimized_module, (self._tenon_module, self._tenon_settings)

    def deep_copy(self, memo: dict) -> torch.nn.Module:
        return optimized_module(copy.deepcopy(self._tenon_module, memo), self._tenon_settings)

    def shallow_copy(self) -> torch.nn.Module:
        return optimized_module(copy.copy(self._tenon_module), self._tenon_settings)

    def load(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in [name for name in state_dict if name.startswith(f"{prefix}_orig_mod.")]:  # as torch.compile's modules save it
            state_dict[prefix + name.removeprefix(f"{prefix}_orig_mod.")] = state_dict.pop(name)
        super(compiled_class, self)._load_from_state_dict(state_dict, prefix, *rest)

    members = {
        "__slots__": ("_tenon_module", "_tenon_settings", "_tenon_call"),
        "__module__": module_class.__module__,
        "__doc__": module_class.__doc__,
        "__call__": call,
        "__reduce_ex__": reduce,
        "__copy__": shallow_copy,
        "__deepcopy__": deep_copy,
        "__wrapped__": property(lambda self: self._tenon_module),
        "_orig_mod": property(lambda self: self._tenon_module),
        "_load_from_state_dict": load,
    }
    compiled_class: Any = type(module_class)(f"Compiled{module_class.__name__}", (module_class,), members)
    return compiled_class
