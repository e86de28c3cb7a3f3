"""Tenon: a JIT compiler for tensor programs.

``tenon.compile`` turns a PyTorch or NumPy function or module into a faster one that gives what eager execution gives. PyTorch is
used when it is imported; the package itself needs NumPy only.
"""
import atexit as _atexit
import os as _os
import sys as _sys

if _sys.implementation.name != "cpython" or not (3, 11) <= _sys.version_info[:2] <= (3, 13):
    raise ImportError(f"Tenon runs on CPython 3.11, 3.12 and 3.13; this is {_sys.version_info[0]}.{_sys.version_info[1]} ({_sys.implementation.name})")

from tenon import _tenon
from tenon._backends import backends, plugins, register_backend
from tenon._compile import compile
from tenon._control import allow_in_graph, cond, disable, graph_break, is_compiling
from tenon._diagnostics import reset, set_logs, stats
from tenon._doctor import doctor
from tenon._errors import CompileError, ConfigError, Error, GraphBreakError, PluginError
from tenon._explain import Explanation, explain
from tenon._export import ExportedProgram, export, load
from tenon._graph import Graph
from tenon._report import Report, report

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "ConfigError",
    "Error",
    "Explanation",
    "ExportedProgram",
    "Graph",
    "GraphBreakError",
    "PluginError",
    "Report",
    "allow_in_graph",
    "backends",
    "compile",
    "cond",
    "disable",
    "doctor",
    "explain",
    "export",
    "graph_break",
    "is_compiling",
    "load",
    "plugins",
    "register_backend",
    "report",
    "reset",
    "set_logs",
    "stats",
]

# The code generator starts while the program imports and loads what it needs. Neither a child nor an exit may find its thread running.
_atexit.register(_tenon.finish_warm_up)
_os.register_at_fork(before=_tenon.finish_warm_up)
_tenon.start_warm_up()
