"""What the text of C++ says, as far as messages and headers need it: strings, brackets, calls. No parser: the house's own style is enough."""
from __future__ import annotations

import re
from collections.abc import Iterator

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
PAIRS = {"(": ")", "[": "]", "{": "}"}


def end_of_bracket(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`, or the end of the text; strings, characters and comments count for nothing."""
    depth, i = 0, start
    while i < len(text):
        if text[i] == '"' or (text[i] == "'" and not (text[i - 1].isdigit() or text[i - 1] == "'")):
            i = end_of_quote(text, i)
            continue
        if text.startswith(("//", "/*"), i):
            i = text.find("\n" if text[i + 1] == "/" else "*/", i)
            if i < 0:
                break
            continue
        depth += (text[i] in PAIRS) - (text[i] in PAIRS.values())
        i += 1
        if depth == 0:
            return i
    return len(text)


def end_of_quote(text: str, start: int) -> int:
    i = start + 1
    while i < len(text) and text[i] != text[start]:
        i += 2 if text[i] == "\\" else 1
    return i + 1


def split(text: str, separator: str = ",") -> list[str]:
    """Parts between separators that stand in no bracket and no string."""
    parts, begin, i = [], 0, 0
    while i < len(text):
        if text[i] in PAIRS:
            i = end_of_bracket(text, i)
        elif text[i] == '"':
            i = end_of_quote(text, i)
        elif text[i] == separator:
            parts.append(text[begin:i].strip())
            begin = i = i + 1
        else:
            i += 1
    return [*parts, text[begin:].strip()] if text[begin:].strip() else parts


def calls(text: str, names: str) -> Iterator[tuple[str, list[str], int]]:
    """Calls of functions whose names the expression matches: name, arguments, where it stands."""
    for match in re.finditer(rf"(?<![\w.>])({names})(?=\()", text):
        end = end_of_bracket(text, match.end())
        yield match[1], split(text[match.end() + 1 : end - 1]), match.start()


def wordings(expression: str) -> list[str]:
    """What an expression that makes a text may say; '…' stands for what is known only then. Nothing where it says no word itself."""
    expression = expression.strip()
    choice = split(expression, "?")
    if len(choice) == 2:
        return [wording for branch in _branches(choice[1]) for wording in wordings(branch)]
    if match := re.match(r"(?:std::string|fmt::format|std::move)?(?=[({])", expression):
        if end_of_bracket(expression, match.end()) == len(expression):
            inner = split(expression[match.end() + 1 : -1])
            return wordings(inner[0]) if inner else []
    made = [""]
    for part in (parts := split(expression, "+")):
        said = _literal(part)
        inner = wordings(part) if said is None and len(parts) > 1 else [said or "…"]
        made = [before + piece for before in made for piece in inner or ["…"]]
    return [text for text in made if re.search(r"[a-z]{2}", text)]


def _branches(text: str) -> list[str]:
    """Of `a : b`, both; colons of namespaces are none."""
    parts = split(re.sub("::", "\0\0", text), ":")
    return [part.replace("\0", ":") for part in parts]


def _literal(part: str) -> str | None:
    """A string, or several beside each other, with '…' for each `{}`; else None."""
    if not re.fullmatch(rf"(?:{STRING.pattern}\s*)+", part.strip(), re.S):
        return None
    said = "".join(match[1] for match in STRING.finditer(part))
    said = re.sub(r'\\(["\\])', r"\1", said).replace("\\n", " ")
    return re.sub(r"\{(?::[^}]*)?\}", "…", said).replace("{{", "{").replace("}}", "}")
