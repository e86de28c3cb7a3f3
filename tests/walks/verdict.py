"""What became of one sample under tenon.compile."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tenon

OWN_BACKENDS = {"python", "reference"}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One of native, opaque, refused, wrong, skipped; and why it is not native."""

    kind: str
    why: str = ""


def how_it_ran(explained: Callable[[], Any]) -> Verdict:
    """The verdict on a right result, from the counts since the last reset; `explained` gives the report that names reasons."""
    stats = tenon.stats()
    if stats["eager_fallbacks"] or stats["graph_breaks"]:
        return Verdict("refused", _reason(explained))
    foreign = OWN_BACKENDS & {name for name, counts in stats["backends"].items() if counts.get("nodes", 1)}
    if foreign or stats.get("opaque_nodes"):
        return Verdict("opaque", ", ".join(sorted(foreign)))
    return Verdict("native")


def _reason(explained: Callable[[], Any]) -> str:
    try:
        reasons = explained().break_reasons
        return reasons[0].reason.splitlines()[0] if reasons else ""
    except Exception as error:  # noqa: BLE001: the reason is only for the report
        return f"{type(error).__name__}: {error}"
