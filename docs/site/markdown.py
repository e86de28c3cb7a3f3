"""What a page of Markdown says of itself: code, links, headings and their anchors, as both the site and a viewer of the repository make them."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator

CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`\n]+`", re.S | re.M)
LINK = re.compile(r"\]\(([^)\s#]*)(#[^)\s]*)?\)")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with what is no code changed."""
    made, end = [], 0
    for code in CODE.finditer(text):
        made += [change(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*made, change(text[end:])])


def links(text: str) -> Iterator[tuple[str, str]]:
    """Targets of links, and their anchors without '#'."""
    for match in LINK.finditer(CODE.sub("", text)):
        if "://" not in match[1] and not match[1].startswith("mailto:"):
            yield match[1], (match[2] or "")[1:]


def slug(heading: str) -> str:
    """The anchor of a heading: small letters, words and hyphens."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.S | re.M), re.M):
        found[slug(heading)] = found.get(slug(heading), -1) + 1
    return {name if not n else f"{name}-{n}" for name, most in found.items() for n in range(most + 1)}


def title(text: str) -> str:
    match = re.search(r"^# (.*)$", text, re.M)
    return re.sub(r"`", "", match[1]) if match else ""


def with_lists(text: str) -> str:
    """A list that follows a line of text has an empty line before it, without which the site would not know it as one."""
    item = r"(?:[-*]|\d+\.) "
    return outside_code(text, lambda prose: re.sub(rf"^((?!{item}|[ \t|]).*\S.*\n)(?={item})", r"\1\n", prose, flags=re.M))


def cell(text: str) -> str:
    """A text as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """A text as code, in a cell of a table or a line."""
    fence = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return fence + pad + " ".join(text.split()).replace("|", "\\|") + pad + fence
