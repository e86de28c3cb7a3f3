"""The one function that most users need."""
from __future__ import annotations

import functools
import json
import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from tenon import _tenon
from tenon._backends import plugins, resolve
from tenon._errors import ConfigError, did_you_mean
from tenon._graph import python_backend
from tenon._messages import tell_once
from tenon._torch_compile.registry import is_option_of_inductor

if TYPE_CHECKING:
    import numpy as np
    import torch

# torch.compile's: there are no CUDA graphs here to be without.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
# Besides these, the name of a backend with a dict of options for it.
OPTIONS = ("freeze", "recompile_limit", "sizes")
GUARD_FILTER = "guard_filter_fn"  # torch.compile's: which guards to leave out


M = TypeVar("M", bound="torch.nn.Module | np.ufunc")  # of a callable with overloads, like a ufunc, a ParamSpec would keep the first alone
P = ParamSpec("P")
R = TypeVar("R")
Backend = str | Sequence[str] | Callable[[Any, list[Any]], Callable[..., Any]]


class Decorator(Protocol):
    """``compile`` with its arguments given: a module keeps its class, anything else its signature."""

    @overload
    def __call__(self, fn_or_module: M, /) -> M: ...
    @overload
    def __call__(self, fn_or_module: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def compile(
    fn_or_module: M,
    *,
    backend: Backend | None = None,
    mode: str | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    in_place: bool = False,
) -> M: ...
@overload
def compile(
    fn_or_module: Callable[P, R],
    *,
    backend: Backend | None = None,
    mode: str | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    in_place: bool = False,
) -> Callable[P, R]: ...
@overload
def compile(
    fn_or_module: None = None,
    *,
    backend: Backend | None = None,
    mode: str | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    in_place: bool = False,
) -> Decorator: ...
def compile(
    fn_or_module: Any = None,
    *,
    backend: Backend | None = None,
    mode: str | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    in_place: bool = False,
) -> Any:
    """Compiles a function, method, callable object or ``torch.nn.Module``; also a decorator, bare or with arguments.

    Parameters
    ----------
    fn_or_module
        What to compile. The result is called like it and gives what it gives. A module stays a module.
    backend
        A name, a list of names in order of preference, or ``fn(graph, example_inputs) -> callable``: `graph` is a ``torch.fx.GraphModule``
        whose ``tenon_graph`` is the :class:`Graph`; where only NumPy is called it is that graph itself. A name that neither a plugin nor
        :func:`register_backend` has is one of torch.compile's (``"inductor"``, ``"aot_eager"``). None: what the configuration says.
    mode
        ``"default"``, ``"reduce-overhead"``, or ``"max-autotune"`` (also ``"max-autotune-no-cudagraphs"``): convolutions may then err by up to 20 times as much as eager's (about
        1e-5 of the largest result) where that makes them faster.
    fullgraph
        Raise :class:`GraphBreakError` where the program cannot be captured as one graph, instead of running that call eagerly.
    dynamic
        Whether sizes, integers and floats are symbolic: True from the start, False never, None when they change.
    options
        ``freeze``: True keeps packed and folded copies of parameters and of modules' small buffers across calls, and folds batch
        norms into the convolutions before them. A write to a parameter that torch counts in ``Tensor._version`` (optimizers,
        ``load_state_dict``, in-place operations), another tensor in its place, and any change of a buffer recompile. Writes to
        parameters that torch does not count are not seen: into ``parameter.data``, NumPy arrays or DLPack tensors that share the
        memory, and by C code; call :func:`tenon.reset` after them. Backends that are Python functions get all tensors as inputs.
        ``recompile_limit``: variants kept of a function before further ones run eagerly, and writes to frozen tensors before they are
        inputs again (default 16). ``sizes``: what symbols of sizes to expect, for backends that take constants only. The name of a
        backend: a dict of its own options.
    disable
        Give back ``fn_or_module`` itself.
    in_place
        For a module: make calls of the module itself run compiled, and give it back, instead of wrapping it.

    Raises
    ------
    ConfigError
        For a name or value that is none that is allowed.
    """
    if fn_or_module is None:
        return functools.partial(
            compile, backend=backend, mode=mode, fullgraph=fullgraph, dynamic=dynamic, options=options, disable=disable, in_place=in_place
        )
    for name, value in (("disable", disable), ("in_place", in_place)):
        if not isinstance(value, bool):
            raise ConfigError(f"{name} must be True or False, got {value!r}")
    if disable:
        return fn_or_module
    settings = settings_of(backend, mode, fullgraph, dynamic, options)
    if "torch" in sys.modules and isinstance(fn_or_module, sys.modules["torch"].nn.Module):
        from tenon._module import compiled_in_place, optimized_module

        return (compiled_in_place if in_place else optimized_module)(fn_or_module, settings)
    if in_place:
        raise ConfigError(f"in_place=True compiles a torch.nn.Module, got {type(fn_or_module).__name__}")
    return compiled_function(fn_or_module, settings)


def uncompiled(fn: Any) -> Any:
    """What a compiled function or module was made of, bound as it is; anything else itself, also a decorated function."""
    if isinstance(fn, types.MethodType) and isinstance(fn.__func__, _tenon.CompiledFunction):
        return types.MethodType(getattr(fn.__func__, "__wrapped__"), fn.__self__)
    ours = isinstance(fn, _tenon.CompiledFunction) or "_tenon_module" in getattr(type(fn), "__slots__", ())
    return fn.__wrapped__ if ours else fn


def own_settings(fn: Any) -> dict[str, Any] | None:
    """The settings that a function or module was compiled with; None for one that is not compiled."""
    if isinstance(fn, types.MethodType):
        fn = fn.__func__
    in_place = getattr(fn, "__dict__", {}).get("_compiled_call_impl")
    if isinstance(fn, _tenon.CompiledFunction) or "_tenon_module" in getattr(type(fn), "__slots__", ()):
        return fn._tenon_settings
    return in_place._tenon_settings if isinstance(in_place, _tenon.CompiledFunction) else None


def settings_like(fn: Any, **given: Any) -> dict[str, Any]:
    """The settings that a function was compiled with, and what is given (as for :func:`compile`) in place of them; breaks are allowed."""
    made = settings_of(given.get("backend"), given.get("mode"), False, given.get("dynamic"), given.get("options"))
    own = own_settings(fn)
    if own is None:
        return made
    chosen = ["backends", "callable", "name"] if given.get("backend") is not None else []
    chosen += ["dynamic"] if given.get("dynamic") is not None else []
    chosen += [name for name in ("freeze", "recompile_limit") if name in (given.get("options") or {})]
    options = json.dumps({**json.loads(own["options"]), **json.loads(made["options"])})
    return {**own, **{key: made[key] for key in chosen}, "options": options, "fullgraph": False}


def settings_of(backend, mode, fullgraph, dynamic, options) -> dict[str, Any]:
    """Checks the arguments of :func:`compile` and puts them into the form of the extension module."""
    if mode is not None and mode not in MODES:
        raise ConfigError(f"mode {mode!r} is none of {', '.join(map(repr, MODES))}{did_you_mean(mode, MODES)}")
    if not isinstance(fullgraph, bool):
        raise ConfigError(f"fullgraph must be True or False, got {fullgraph!r}")
    if dynamic not in (None, True, False):
        raise ConfigError(f"dynamic must be True, False or None, got {dynamic!r}")
    if isinstance(options, dict) and GUARD_FILTER in options:
        options = {name: value for name, value in options.items() if name != GUARD_FILTER}
        tell_once("compile", f"options[{GUARD_FILTER!r}] is not followed: all that a capture has read is checked at each call")
    rest, of_torch = _checked_options(options)
    limit, freeze = rest.pop("recompile_limit", None), rest.pop("freeze", False)
    names, function, label = resolve(backend, of_torch)
    if of_torch and label != "inductor":
        tell_once("compile", f"options of torch._inductor say nothing to Tenon's backends and are passed over: {', '.join(of_torch)}")
    try:
        text = json.dumps({**({"mode": mode.removesuffix("-no-cudagraphs")} if mode else {}), **rest})
    except TypeError as error:
        raise ConfigError(f"options must hold JSON values: {error}") from None
    return {
        "backends": names,
        "callable": functools.partial(python_backend, function) if function is not None else None,
        "name": label,
        "fullgraph": bool(fullgraph),
        "dynamic": dynamic,
        "options": text,
        "freeze": freeze,
        **({"recompile_limit": limit} if limit is not None else {}),
    }


def _checked_options(options: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of a compile, each under a name that somebody reads, and apart from them those that torch's own compiler reads."""
    if options is None:
        return {}, {}
    if not isinstance(options, dict):
        raise ConfigError(f"options must be a dict, got {type(options).__name__}")
    allowed = [*OPTIONS, *(plugin["name"] for plugin in plugins() if plugin["kind"] == "backend")]
    of_torch = {name: value for name, value in options.items() if name not in allowed and is_option_of_inductor(name)}
    for name in options:
        if name not in allowed and name not in of_torch:
            raise ConfigError(f"option {name!r} is none of {', '.join(map(repr, allowed))}{did_you_mean(name, allowed)}")
    if not isinstance(options.get("freeze", False), bool):
        raise ConfigError(f"options['freeze'] must be True or False, got {options['freeze']!r}")
    limit = options.get("recompile_limit", 1)
    if type(limit) is not int or limit < 1:
        raise ConfigError(f"options['recompile_limit'] must be a positive int, got {limit!r}")
    return {name: value for name, value in options.items() if name not in of_torch}, of_torch


def compiled_function(fn: Callable, settings: dict[str, Any]) -> Callable:
    """Wraps a callable, with the name and documentation of what it wraps. What is inside a staticmethod or classmethod of a class stays inside."""
    if isinstance(fn, staticmethod | classmethod):
        return type(fn)(compiled_function(fn.__func__, settings))
    if not callable(fn):
        raise ConfigError(f"tenon.compile takes a function, a callable object or a module, got {type(fn).__name__}")
    return functools.update_wrapper(_tenon.CompiledFunction(fn, settings), fn)
