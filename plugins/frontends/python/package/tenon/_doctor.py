"""What a bug report should say: ``tenon.doctor()``, ``tenon doctor``."""
from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from typing import Any

import numpy as np

from tenon import _tenon
from tenon._errors import Error


class Diagnosis(dict[str, dict[str, str]]):
    """Sections of names and texts; ``str()`` is for people."""

    def __str__(self) -> str:
        lines = []
        for section, entries in self.items():
            lines += [section, *(f"  {name:<14} {text}" for name, text in entries.items())]
        return "\n".join(lines)


def doctor() -> Diagnosis:
    """Says what this process runs on, and what of it Tenon uses: versions, processor, plugins and why one is not used, cache, torch, cards.

    Loads the backends, and torch where it is installed.
    """
    torch = _torch()
    try:
        found = json.loads(_tenon.query("doctor"))
    except Error as refusal:  # a wrong configuration is a finding, too
        found = {"configuration": {"refused": str(refusal)}}
    found["python"] = {"version": sys.version.replace("\n", " "), "program": sys.executable, "package": os.path.dirname(__file__), "numpy": np.__version__}
    found["torch"] = _about(torch) if not isinstance(torch, str) else {"not used": torch}
    found["layouts"] = _tenon.layouts()
    return Diagnosis(found)


def _torch() -> Any:
    """The module, or why there is none."""
    try:
        import torch
    except ImportError:
        return "it is not installed"
    except Exception as failure:  # a broken installation is a finding, too
        return f"it is installed, and cannot be imported: {failure!r}"
    return torch


def _about(torch: Any) -> dict[str, str]:
    about = {"version": str(torch.__version__), "path": os.path.dirname(torch.__file__), "threads": str(torch.get_num_threads()), "cards": _cards(torch)}
    for library in ("torchvision", "triton"):
        try:
            about[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return about


def _cards(torch: Any) -> str:
    try:
        if not torch.cuda.is_available():
            return f"none; torch was built for {'CUDA ' + torch.version.cuda if torch.version.cuda else 'no card'}"
        cards = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
        return "; ".join(f"{card.name}, {card.major}.{card.minor}, {card.total_memory / 2**30:.0f} GiB" for card in cards)
    except Exception as failure:  # of the driver: a finding, too
        return f"cannot be asked: {failure!r}"
