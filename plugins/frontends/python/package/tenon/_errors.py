"""The exceptions that users catch."""
from __future__ import annotations

import difflib
from collections.abc import Iterable

from tenon import _tenon


class Error(Exception):
    """Anything that Tenon refuses or cannot do."""


class GraphBreakError(Error):
    """Under ``fullgraph=True``: the program cannot be captured as one graph. The message names the line and a way out."""


class CompileError(Error):
    """A backend that is a Python callable failed. ``__cause__`` is its exception."""


class PluginError(Error):
    """A plugin could not be used."""


class ConfigError(Error, ValueError):
    """A name or value that the user gave is none that is allowed."""


for _error in (Error, GraphBreakError, CompileError, PluginError, ConfigError):
    _error.__module__ = "tenon"  # where users find it: tracebacks and pickles name it so

_tenon.set_error_classes(Error, GraphBreakError, CompileError, PluginError, ConfigError)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of a message about a word that is none of the known ones; empty when none is near."""
    near = difflib.get_close_matches(str(word), list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
