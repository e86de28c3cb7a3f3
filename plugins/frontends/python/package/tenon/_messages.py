"""What Tenon says unasked of captures, compiles and calls: through Python's ``logging``, in loggers ``tenon.*`` at level WARNING.

Where the program has set no handler, logging itself writes it to stderr. ``warnings`` is not used: a program may have made errors of warnings, or records them.
"""
from __future__ import annotations

import logging
import sys

_told: set[tuple[str, str]] = set()


def tell(area: str, text: str) -> None:
    """Says something in the logger ``tenon.<area>``. What a handler of the program raises does not reach the program's own code."""
    try:
        logging.getLogger(f"tenon.{area}").warning("%s", text)
    except Exception as failure:
        print(f"{text}\ntenon: a handler of logging failed on this message: {failure!r}", file=sys.stderr)


def tell_once(area: str, text: str) -> None:
    """Says it the first time in the process."""
    if (area, text) not in _told:
        _told.add((area, text))
        tell(area, f"tenon: {text}")
