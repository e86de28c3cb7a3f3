"""The page of all messages: read from where they are made, so that none is listed twice."""
from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from docs.site import cpp_text
from docs.site.markdown import code

FRONTEND = "plugins/frontends/python"
STRING = r'"(?:[^"\\\n]|\\.)*"'
VALUE = rf"(?:{STRING}|k[A-Z]\w*|\w+\(\w+\))"
ADVICE = "what to do depends on what is called"


class Message(NamedTuple):
    text: str
    hint: str
    place: str  # the folder that makes it


def sources(root: pathlib.Path, folder: str) -> Iterator[tuple[str, str]]:
    """C++ files below a folder: the folder of each, and its text."""
    for path in sorted((root / folder).rglob("*")):
        if path.suffix in (".cpp", ".h") and "template" not in path.parts:
            yield str(path.parent.relative_to(root)), path.read_text()


def constants(text: str) -> dict[str, str]:
    """Texts with names."""
    found = re.findall(rf"(?:constexpr (?:const char\*|std::string_view|char)|const char\* const) (k\w+)(?:\[\])? =\s*((?:{STRING}\s*)+);", text)
    return {name: "".join(cpp_text.wordings(value)) for name, value in found}


def kinds(root: pathlib.Path) -> dict[str, str]:
    """What ends a capture, with the hint that it has where none is given."""
    text = (root / FRONTEND / "objects/graph_break.h").read_text()
    found = {"GraphBreak": "kOutsideHint", "set_break_signal": "kOutsideHint"}
    for name, body in re.findall(r"^class (\w+) : public GraphBreak \{(.*?)^\};", text, re.S | re.M):
        hint = re.search(rf"hint = (k\w+)|GraphBreak\(std::move\(reason\), (k\w+|{STRING})\)", body)
        found[name] = (hint[1] or hint[2]) if hint else "kOutsideHint"
    return found


def answers(root: pathlib.Path) -> dict[str, list[str]]:
    """Functions of the frontend that give a text, by name, with all that they may say."""
    found: dict[str, list[str]] = {}
    for _, text in sources(root, FRONTEND):
        for match in re.finditer(r"^(?:const )?std::(?:string|optional<std::string>) (?:\w+::)*(\w+)\([^;{}]*\)(?: const)? \{", text, re.M):
            body = text[match.end() : cpp_text.end_of_bracket(text, match.end() - 1)]
            said = [one for value in re.findall(rf"return ((?:{STRING}|[^;\"])*);", body) for one in cpp_text.wordings(value) if " " in one]
            found.setdefault(match[1], []).extend(said)
    return found


def breaks(root: pathlib.Path) -> list[Message]:
    shared = {name: [value] for _, text in sources(root, FRONTEND) for name, value in constants(text).items()} | answers(root)
    found, by_kind = [], kinds(root)
    for place, text in sources(root, FRONTEND):
        known = shared | {name: [value] for name, value in constants(text).items()}
        for name, arguments, _ in cpp_text.calls(text, "|".join(by_kind)):
            arguments = arguments[name == "Unbuildable" :]
            if arguments:
                hint = arguments[1] if len(arguments) > 1 else by_kind[name]
                found += [Message(said, one, place) for said in _said(arguments[0], known) for one in _hints(hint, known)]
        for reason, hint in re.findall(rf"\.reason = ({VALUE}), \.hint = ({VALUE})", text):
            found += [Message(said, one, place) for said in _said(reason, known) for one in _hints(hint, known)]
    return sorted(set(found))


def _said(expression: str, known: dict[str, list[str]]) -> list[str]:
    """What an expression may say, also where that stands under a name or is what a function gives."""
    return known.get(re.sub(r"\(.*\)$", "", expression, flags=re.S)) or cpp_text.wordings(expression)


def _hints(expression: str, known: dict[str, list[str]]) -> list[str]:
    named = [hint for name in re.findall(r"\bk[A-Z]\w*", expression) for hint in known.get(name, ())]
    return named or cpp_text.wordings(expression) or [ADVICE]


def advice(root: pathlib.Path) -> list[tuple[str, str]]:
    """What to do about functions written in C: which functions, and the hint."""
    text = (root / FRONTEND / "builtins/advice.cpp").read_text()
    known = constants((root / FRONTEND / "objects/hints.h").read_text()) | constants(text)
    rows = re.findall(rf'\{{"([\w.]+)", "([^"]*)", (k\w+|{STRING})\}}', text)
    return [(", ".join(f"`{module}.{name}`" for name in names.split()) or f"`{module}`", known.get(hint) or hint.strip('"')) for module, names, hint in rows]


def unasked(root: pathlib.Path) -> list[Message]:
    """What is said without being asked, once a place, by Python's logging or on stderr. The hint is the log."""
    found = []
    for folder in ("framework/host", "plugins"):
        for place, text in sources(root, folder):
            for name, arguments, start in cpp_text.calls(re.sub(r"(?:\.|->)warn_once", " warn_once", text), "warn_once|say_once|tell"):
                if len(arguments) == (1 if name == "say_once" else 2):
                    log = "recompiles" if name == "say_once" else "".join(cpp_text.wordings(arguments[0])[:1])
                    found += [Message(said.removeprefix("tenon: "), log, place) for said in _resolved(arguments[-1], text[:start]) if log]
    for place, tree in _modules(root):
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("tell", "tell_once") and isinstance(call.args[0], ast.Constant):
                found += [Message(said.removeprefix("tenon: "), str(call.args[0].value), place) for said in _python_wording(call.args[1])]
    return sorted(set(found))


def _resolved(expression: str, before: str) -> list[str]:
    """The wordings of an expression, of which a part may have been named a few lines earlier."""
    said = cpp_text.wordings(expression)
    name = re.match(r"(\w+)\b", expression)
    if name and expression.startswith(name[1]) and not expression.startswith(("fmt", "std")):
        made = list(re.finditer(rf'\b{name[1]} = ((?:{STRING}|[^;"])*);', before[-2500:]))
        first = cpp_text.wordings(made[-1][1]) if made else []
        if first:
            return [begin + (said[0].removeprefix("…") if said else "") for begin in first]
    return said


def refused(root: pathlib.Path) -> list[Message]:
    """Errors about what was given: arguments, options, files, plugins."""
    found = []
    for folder in ("framework/host", f"{FRONTEND}/session", f"{FRONTEND}/export", f"{FRONTEND}/module"):
        for place, text in sources(root, folder):
            for name, arguments, _ in cpp_text.calls(text, "TENON_USER_CHECK|Exception|Refused|CommandError|refuse|refusal"):
                found += [Message(said, "", place) for one in arguments[name == "TENON_USER_CHECK" :][:2] for said in cpp_text.wordings(one) if " " in said]
    for place, tree in _modules(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args and getattr(node.exc.func, "id", "") in ("Error", "ConfigError", "PluginError", "CompileError"):
                found += [Message(said, node.exc.func.id, place) for said in _python_wording(node.exc.args[0])]
    return sorted(set(found))


def _modules(root: pathlib.Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((root / FRONTEND / "package/tenon").rglob("*.py")):
        yield FRONTEND, ast.parse(path.read_text())


def _python_wording(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return ["".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [(_python_wording(node.left) or ["…"])[0] + (_python_wording(node.right) or ["…"])[0]]
    return []


def _rows(messages: list[Message]) -> list[str]:
    made = {}
    for message in messages:
        made.setdefault(message.text, set()).add(message.place)
    return [f"| {code(text)} | {', '.join(f'[{_room(place)}](../{place}/README.md)' for place in sorted(places))} |" for text, places in sorted(made.items())]


def _room(place: str) -> str:
    return place.removeprefix(FRONTEND + "/").removeprefix("framework/").removeprefix("plugins/")


def page(root: pathlib.Path) -> str:
    """All messages by what to do about them, each with the folder that makes it; "…" is what is known only then."""
    lines = [
        "# Messages", "",
        "Every reason for which a capture ends, by the hint that comes with it, then what Tenon says unasked, then what it refuses. \"…\" stands for a name, "
        "a number or a text of your program. What an operation refuses is said in its own words, behind its name. The search finds a message by its words. [Troubleshooting](troubleshooting.md) is the page to begin with.", "",
        "## Why a graph breaks", "",
        "What is told by `TENON_LOGS=graph_breaks`, by `tenon.explain`, and by `tenon.GraphBreakError`. What to do in general: "
        "[graph breaks](troubleshooting.md#a-graph-breaks).", "",
    ]  # fmt: skip
    by_hint: dict[str, list[Message]] = {}
    for message in breaks(root):
        by_hint.setdefault(message.hint, []).append(message)
    outside = constants((root / FRONTEND / "objects/hints.h").read_text())["kOutsideHint"]  # of what has no other: it comes last
    for hint, messages in sorted(by_hint.items(), key=lambda item: (item[0] == outside, -len(item[1]), item[0])):
        lines += [f"### {hint[0].upper()}{hint[1:]}", "", "| reason | made by |", "|---|---|", *_rows(messages), ""]
        if hint == ADVICE:
            lines += ["| function, or module | what to do |", "|---|---|", *(f"| {what} | {way} |" for what, way in advice(root)), ""]
    lines += ["## What is said unasked", "", "By Python's `logging`, in the logger `tenon.` with the name of the log, once each; what to do: "
              "[warnings](troubleshooting.md#a-warning-in-the-log).", ""]  # fmt: skip
    by_log: dict[str, list[Message]] = {}
    for message in unasked(root):
        by_log.setdefault(message.hint, []).append(message)
    for log, messages in sorted(by_log.items()):
        lines += [f"### tenon.{log}", "", "| message | made by |", "|---|---|", *_rows(messages), ""]
    lines += ["## What is refused", "", "Errors about what was given, as `tenon.Error` and its kinds; what to do: "
              "[errors](troubleshooting.md#an-error-of-tenon).", "", "| message | made by |", "|---|---|", *_rows(refused(root)), ""]  # fmt: skip
    return "\n".join(lines)
