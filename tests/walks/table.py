"""The results of a walk: read, written, and told."""
from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TextIO


@dataclasses.dataclass(frozen=True)
class Row:
    """Counts of samples of one entry in one dtype, and the first reason of the worst kind that is there."""

    name: str
    dtype: str
    native: int
    opaque: int
    refused: int
    wrong: int
    skipped: int
    why: str

    @property
    def verdict(self) -> str:
        kinds = ("wrong", "refused", "opaque", "native")
        return next((kind for kind in kinds if getattr(self, kind)), "none")


def read(path: Path) -> dict[tuple[str, str], Row]:
    """The latest row of each entry and dtype."""
    if not path.exists():
        return {}
    rows = (Row(**json.loads(line)) for line in path.read_text().splitlines())
    return {(row.name, row.dtype): row for row in rows}


def append(out: TextIO, row: Row) -> None:
    out.write(json.dumps(dataclasses.asdict(row)) + "\n")
    out.flush()


def show(row: Row) -> None:
    counts = " ".join(f"{kind} {getattr(row, kind)}" for kind in ("native", "opaque", "refused", "wrong") if getattr(row, kind))
    print(f"{row.name} {row.dtype}: {counts or 'no samples'}{'  ' + row.why[:160] if row.verdict != 'native' else ''}", flush=True)


def verdicts(rows: dict[tuple[str, str], Row]) -> dict[str, str]:
    """By entry: the worst of its dtypes."""
    order = ("wrong", "refused", "opaque", "native", "none")
    found: dict[str, str] = {}
    for row in rows.values():
        found[row.name] = min(found.get(row.name, "none"), row.verdict, key=order.index)
    return found


def summary(rows: dict[tuple[str, str], Row]) -> None:
    found = list(verdicts(rows).values())
    print(f"{len(found)} entries: " + ", ".join(f"{kind} {found.count(kind)}" for kind in ("native", "opaque", "refused", "wrong", "none")))


def text(rows: dict[tuple[str, str], Row], title: str, command: str, legend: str) -> str:
    """The table as a Markdown page; `command` is what writes it, `legend` says what its words mean."""
    found = verdicts(rows)
    counts = ", ".join(f"{list(found.values()).count(kind)} {kind}" for kind in ("native", "opaque", "refused", "wrong"))
    lines = [
        f"# {title}",
        "",
        f"Written by `{command}`. {legend}",
        "",
        f"{len(found)} entries with samples: {counts}.",
        "",
        "| entry | dtype | native | opaque | refused | wrong | first reason |",
        "|---|---|---|---|---|---|---|",
    ]
    for _, row in sorted(rows.items()):
        if row.verdict != "none":
            why = "" if row.verdict == "native" else row.why.replace("|", "\\|").replace("\n", " ")[:120]
            lines.append(f"| {row.name} | {row.dtype} | {row.native} | {row.opaque} | {row.refused} | {row.wrong} | {why} |")
    return "\n".join(lines) + "\n"
