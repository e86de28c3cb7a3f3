"""Warnings that captured code issues: again at every call, at the line of the program that issued them."""
from __future__ import annotations

import warnings
from typing import Any


def issue(category: type[Warning], module_globals: dict[str, Any], filename: str, line: int, message: str) -> None:
    """Does what ``warnings.warn`` does for a line of the module with these globals."""
    registry = module_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, filename, line, module_globals.get("__name__") or "<string>", registry)
