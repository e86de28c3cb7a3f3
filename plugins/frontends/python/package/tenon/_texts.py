"""What C code of Python does for the text of a container, in Python: a capture follows it where numbers in the container vary."""
from __future__ import annotations

from typing import Any


def text_of(value: Any) -> str:
    """Give ``repr(value)``, of lists, tuples and dicts of these from the texts of their items."""
    kind = type(value)
    if kind is list:
        return "[" + ", ".join([text_of(item) for item in value]) + "]"
    if kind is tuple:
        return "(" + ", ".join([text_of(item) for item in value]) + (",)" if len(value) == 1 else ")")
    if kind is dict:
        return "{" + ", ".join([text_of(key) + ": " + text_of(item) for key, item in value.items()]) + "}"
    return repr(value)
