"""What Tenon says unasked of captures, compiles and calls: through Python's ``logging``, in loggers ``tenon.*`` at level WARNING.

Where the program has set no handler, logging itself writes it to stderr; so do we where all handlers only collect it in memory, as pytest's do. ``warnings`` is not used: a program may have made errors of warnings, or records them.
"""
from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator

_told: set[tuple[str, str]] = set()


def tell(area: str, text: str) -> None:
    """Says something in the logger ``tenon.<area>``. What a handler of the program raises does not reach the program's own code."""
    logger = logging.getLogger(f"tenon.{area}")
    try:
        logger.warning("%s", text)
        handlers = list(_handlers_of(logger))
        if handlers and logger.isEnabledFor(logging.WARNING) and not any(map(_shows, handlers)):
            print(text, file=sys.stderr)
    except Exception as failure:
        print(f"{text}\ntenon: a handler of logging failed on this message: {failure!r}", file=sys.stderr)


def _handlers_of(logger: logging.Logger | None) -> Iterator[logging.Handler]:
    while logger:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None


def _shows(handler: logging.Handler) -> bool:
    """Whether somebody may see what the handler gets."""
    if isinstance(handler, logging.FileHandler):
        return handler.baseFilename != os.devnull
    if isinstance(handler, logging.StreamHandler):
        return not isinstance(handler.stream, io.StringIO)
    return not isinstance(handler, logging.NullHandler)


def tell_once(area: str, text: str) -> None:
    """Says it the first time in the process."""
    if (area, text) not in _told:
        _told.add((area, text))
        tell(area, f"tenon: {text}")
