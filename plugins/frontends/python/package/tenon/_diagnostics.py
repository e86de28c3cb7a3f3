"""Counters, logs, and forgetting."""
from __future__ import annotations

import json
import sys
from typing import Any, Never

from tenon import _render, _tenon
from tenon._errors import ConfigError, did_you_mean

_tenon.set_renderer(_render.traced)


def stats() -> dict[str, Any]:
    """Counts since the last :func:`reset`.

    Returns
    -------
    dict
        ``graphs``, ``graph_breaks``, ``recompiles``, ``calls``, ``eager_fallbacks``, ``left_to_python`` (places after graph
        breaks from which plain Python is faster), ``compile_failures`` (nodes that a backend claimed, could not
        compile and left to the next) as ints, and ``backends``: for each backend that ran,
        ``nodes``, ``run_ms`` and ``compile_ms``; ``host``: among others ``cache``, what was found of compiled code on disk (``hits``,
        ``misses``, ``stored``, ``damaged``); ``autograd``: the nodes that were made of torch's autograd graph, the graphs of gradients that
        were compiled, gradients that were copied since they lay otherwise than these, and which ``tier`` of nodes this torch allows.
    """
    return _tenon.stats()


def reset() -> None:
    """Forgets all compiled code and statistics."""
    _tenon.reset()


def set_logs(
    *,
    all: bool = False,
    graph_code: bool = False,
    graph_breaks: bool = False,
    recompiles: bool = False,
    guards: bool = False,
    autodiff: bool = False,
    passes: bool = False,
    claims: bool = False,
    fusion: bool = False,
    steps: bool = False,
    kernel_code: bool = False,
    kernel_times: bool = False,
    compile: bool = False,
    fallbacks: bool = False,
    plugins: bool = False,
    cache: bool = False,
    runtime: bool = False,
    help: bool = False,
    **unknown: Never,
) -> None:
    """Chooses what is logged to stderr, in place of what was chosen before. The environment variable TENON_LOGS=a,b does the same.

    ``help=True``, or TENON_LOGS=help, lists the names with what each shows.
    """
    chosen = {name: on for name, on in locals().items() if name != "unknown"}
    for name in unknown:
        raise ConfigError(f"tenon.set_logs knows no log {name!r}{did_you_mean(name, chosen)}")
    _tenon.set_logs(",".join(name for name, on in chosen.items() if on))
    if help:
        print("\n".join(f"{name:<13} {meaning}" for name, meaning in json.loads(_tenon.query("logs")).items()), file=sys.stderr)
