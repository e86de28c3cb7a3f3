"""A bar in a notebook while something compiles for long."""
from __future__ import annotations

import html
from typing import Any

_bar: Any = None  # the display of the compile that runs


def show(line: str, part: float) -> None:
    """Draws the bar at a part of the whole, from 0 to 1, with the line beside it; an empty line takes it away."""
    global _bar
    from IPython.display import HTML, display

    drawn = HTML(f'<progress value="{part:.3f}" max="1"></progress> <code>{html.escape(line)}</code>' if line else "")
    if _bar is None:
        _bar = display(drawn, display_id=True) if line else None
    else:
        _bar.update(drawn)
    if not line:
        _bar = None
