"""Backends by name: plugins, and Python functions that were registered."""
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from tenon import _tenon
from tenon._errors import ConfigError, did_you_mean

_registered: dict[str, Callable] = {}


def register_backend(name: str, fn: Callable[[Any, list[Any]], Callable[..., Any]]) -> None:
    """Makes ``fn(graph, example_inputs) -> callable`` available as ``backend=name``.

    Raises
    ------
    ConfigError
        If the name is no text or taken by a plugin, or the function is none.
    """
    if not isinstance(name, str) or not name:
        raise ConfigError(f"the name of a backend is a text, got {name!r}")
    if not callable(fn):
        raise ConfigError(f"the backend {name!r} must be a callable, fn(graph, example_inputs) -> callable, got {type(fn).__name__}")
    if name in {plugin["name"] for plugin in plugins() if plugin["kind"] == "backend"}:
        raise ConfigError(f"the backend name {name!r} is taken by a plugin")
    _registered[name] = fn


def backends() -> list[str]:
    """The names that ``backend=`` takes."""
    usable = [p["name"] for p in plugins() if p["kind"] == "backend" and not p.get("refusal")]
    return sorted({*usable, *_registered})


def plugins() -> list[dict[str, Any]]:
    """What was found: name, kind, version, path, and for what is not usable, why. Of this frontend also which nodes of torch's autograd
    graph it makes (``autograd``: ``native``, or ``autograd.Function`` where torch's private layout is not the one known)."""
    found = json.loads(_tenon.query("plugins"))
    listed = found["plugins"] if isinstance(found, dict) else found
    for plugin in listed:
        if plugin["kind"] == "frontend" and plugin["name"] == "python" and "torch" in sys.modules:
            plugin["autograd"] = _tenon.stats()["autograd"]["tier"]
    return listed


def resolve(backend: str | list[str] | tuple[str, ...] | Callable | None, torch_options: dict[str, Any] | None = None) -> tuple[tuple[str, ...] | None, Callable | None, str]:
    """Splits what the user gave into (plugin names, Python callable, name for messages); one of the first two is None.

    A name that no plugin and no registered function has is looked up in torch's registry; `torch_options` are for what is found there.
    """
    if backend is None:
        return None, None, ""
    if isinstance(backend, str):
        if backend in _registered:
            return None, _registered[backend], backend
        ours = [plugin["name"] for plugin in plugins() if plugin["kind"] in ("backend", "frontend")]
        if backend in ours or "torch" not in sys.modules:
            return (backend,), None, backend  # a name that is nobody's is refused where a session looks for it
        from tenon._torch_compile import registry

        if found := registry.backend_named(backend, torch_options or {}):
            return None, found, backend
        known = [*backends(), *registry.names()]
        raise ConfigError(f"unknown backend {backend!r}{did_you_mean(backend, known)}; Tenon's: {', '.join(backends())}; torch's: {', '.join(registry.names())}")
    if isinstance(backend, (list, tuple)):
        if not backend or not all(isinstance(name, str) for name in backend):
            raise ConfigError(f"a list of backends must hold names, got {backend!r}")
        mine = [name for name in backend if name in _registered]
        if mine:
            raise ConfigError(f"{mine[0]!r} is a Python function: it gets the whole graph and cannot be one of a list")
        return tuple(backend), None, ", ".join(backend)
    if callable(backend):
        return None, backend, getattr(backend, "__name__", type(backend).__name__)
    raise ConfigError(f"backend must be a name, a list of names or a callable, got {backend!r}")
