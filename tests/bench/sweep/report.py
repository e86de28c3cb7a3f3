"""What rows of the sweep say: totals, and each slow row with its reason."""
from __future__ import annotations

import fnmatch
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

SLOW, PROCESSES = 0.95, 3  # a row is slow that has less of eager's speed than this in so many processes
REASONS = Path(__file__).with_name("reasons.txt")


def key(row: dict) -> tuple[str, str, str, str]:
    """What a row is about."""
    return row["op"], row["dtype"], row["size"], row["layout"]


def read(files: Iterable[Path]) -> list[dict]:
    """The rows of files, the last of each kind."""
    rows: dict = {}
    for file in files:
        for text in file.read_text().splitlines() if file.exists() else ():
            row = json.loads(text)
            rows[key(row)] = row
    return list(rows.values())


def is_slow(row: dict) -> bool:
    """Whether each of three processes said so."""
    return len(row.get("ratios", ())) >= PROCESSES and max(row["ratios"]) < SLOW


def is_wrong(row: dict) -> bool:
    """Whether compiled code had other values, or none."""
    return "wrong" in row or "failed" in row


def speed(row: dict) -> float:
    """Eager's time by compiled code's; of several processes the best."""
    return max(row["ratios"])


def line(row: dict) -> str:
    """A row in words."""
    what = row.get("wrong") or row.get("failed")
    return " ".join(key(row)) + (f": {what}" if what else f": {speed(row):.2f} ({row['eager_us']:.4g} us eager, {row['tenon_us']:.4g} us compiled, {row['ran']})")


def reasons() -> dict[str, str]:
    """Why rows are slow: by pattern of `op dtype size layout`, as a person wrote it."""
    lines = [text for text in REASONS.read_text().splitlines() if text and not text.startswith("#")]
    return dict(text.split(": ", 1) for text in lines)


def reason_of(row: dict, known: dict[str, str]) -> str:
    """The reason of a slow row; nothing where nobody has said why."""
    return next((why for pattern, why in known.items() if fnmatch.fnmatchcase(" ".join(key(row)), pattern)), "")


def totals(rows: list[dict], of: Callable[[dict], str]) -> list[str]:
    """Lines of a table of the timed rows by kind."""
    kinds = defaultdict(list)
    for row in rows:
        kinds[of(row)].append(row)
    lines = []
    for kind, some in kinds.items():
        mean = math.exp(sum(math.log(speed(row)) for row in some) / len(some))
        counts = Counter(row["ran"] for row in some)
        slow = sum(map(is_slow, some))
        lines.append(f"| {kind} | {len(some)} | {mean:.2f} | {slow} | {sum(not is_slow(r) and speed(r) < 1 for r in some)} | {counts['native']} / {counts['opaque']} / {counts['refused']} |")
    return lines


def text(rows: list[dict]) -> str:
    """The report as a page."""
    timed, known = [row for row in rows if "ratios" in row], reasons()
    slow = sorted(filter(is_slow, timed), key=speed)
    unexplained = [row for row in slow if not reason_of(row, known)]
    left = Counter(row["left"].split(":")[0] for row in rows if "left" in row)
    loads = [row["load"] for row in timed if "load" in row]
    load = f" Beside other programs: the machine's load was {min(loads)} to {max(loads)}." if loads else ""
    head = "| rows | geometric mean | slow | below 1, not slow | native / opaque / refused |\n|---|---|---|---|---|---|"
    parts = [
        "# The speed sweep\n\nWritten by `python -m tests.bench.sweep --report FILES --table FILE`. Figures are eager's time by compiled code's, least times of blocks in turns;",
        f"a row is slow below {SLOW} in {PROCESSES} processes.{load}\n\n{len(rows)} rows: {len(timed)} timed, {len(slow)} slow, {len(unexplained)} of these unexplained, {sum(map(is_wrong, rows))} wrong or failed, {sum(left.values())} without a time"
        + f" ({', '.join(f'{count} {why}' for why, count in left.most_common())}).\n",
        f"| dtype {head}\n" + "\n".join(totals(timed, lambda row: row["dtype"])) + "\n",
        f"| size, layout {head}\n" + "\n".join(totals(timed, lambda row: f"{row['size']}, {row['layout']}")) + "\n",
    ]
    if wrong := list(filter(is_wrong, rows)):
        parts.append("## Wrong or failed\n\n" + "\n".join(f"- {line(row)}".replace("|", "\\|") for row in wrong) + "\n")
    parts.append("## Slow\n\n| op | dtype | size | layout | × eager | eager us | how it ran | reason |\n|---|---|---|---|---|---|---|---|")
    parts += ["| " + " | ".join([*key(row), f"{speed(row):.2f}", f"{row['eager_us']:.4g}", row["ran"], reason_of(row, known) or "unexplained"]) + " |" for row in slow]
    return "\n".join(parts) + "\n"
