"""The exceptions that users catch."""
from __future__ import annotations

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


_tenon.set_error_classes(Error, GraphBreakError, CompileError, PluginError, ConfigError)
