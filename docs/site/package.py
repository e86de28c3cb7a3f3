"""The reference of the Python package: what `tenon.__all__` names, with signatures and docstrings, read from the sources."""
from __future__ import annotations

import ast
import inspect
import pathlib
import re
from collections.abc import Iterator

PACKAGE = "plugins/frontends/python/package/tenon"
GROUPS = {
    "Compiling": ("compile", "disable", "graph_break", "allow_in_graph", "is_compiling", "cond", "reset"),
    "Looking": ("explain", "Explanation", "report", "Report", "stats", "set_logs", "doctor"),
    "Programs for elsewhere": ("export", "ExportedProgram", "load"),
    "Backends": ("backends", "plugins", "register_backend", "Graph"),
    "Errors": ("Error", "GraphBreakError", "CompileError", "PluginError", "ConfigError"),
}
ROLE = re.compile(r":(?:class|func|meth|attr|mod|exc):`~?\.?([\w.]+)`")


def public(root: pathlib.Path) -> dict[str, list[ast.stmt]]:
    """What the package gives by name: its definition; of what has overloads, each and the last."""
    tree = ast.parse((root / PACKAGE / "__init__.py").read_text())
    named = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__")
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tenon."):
            path = root / PACKAGE / node.module.removeprefix("tenon.").replace(".", "/")
            module = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
            for alias in node.names:
                if alias.name in named:
                    found[alias.name] = [one for one in module.body if getattr(one, "name", "") == alias.name]
    return found


def signature(node: ast.FunctionDef, name: str) -> str:
    """A function's head, without `self`, one parameter a line where it is long."""
    parts = [part for part in _parameters(node) if part != "self"]
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    head = f"{name}({', '.join(parts)}){result}"
    if len(head) <= 110:
        return head
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){result}"])


def _parameters(node: ast.FunctionDef) -> Iterator[str]:
    given, defaults = node.args, [None] * (len(node.args.posonlyargs + node.args.args) - len(node.args.defaults)) + node.args.defaults
    for place, (argument, default) in enumerate(zip(given.posonlyargs + given.args, defaults, strict=True), 1):
        yield ast.unparse(argument) + (f" = {ast.unparse(default)}" if default else "")
        if place == len(given.posonlyargs):
            yield "/"
    if given.vararg or given.kwonlyargs:
        yield "*" + (ast.unparse(given.vararg) if given.vararg else "")
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield ast.unparse(argument) + (f" = {ast.unparse(default)}" if default else "")
    if given.kwarg:
        yield "**" + ast.unparse(given.kwarg)


def words(docstring: str | None) -> str:
    """A NumPy-style docstring as Markdown: its sections are bold, parameters a list of definitions."""
    text = ROLE.sub(r"`\1`", inspect.cleandoc(docstring or "")).replace("``", "`")
    text = re.sub(r"^(\w[\w ]*)\n-{3,}$", r"**\1**\n", text, flags=re.M)
    made, fields = [], False
    for line in text.splitlines():
        if re.fullmatch(r"\*\*.*\*\*", line):
            fields = True
        if fields and re.match(r"[\w*`]", line) and not line.startswith("**"):
            made += ["", f"`{line}`" if not line.startswith("`") else line, ""]
        elif fields and line.startswith("    "):
            made.append((":   " if made[-1] == "" else "    ") + line.strip())
        else:
            made.append(line)
    return re.sub(r"\n\n(:   )", r"\n\1", "\n".join(made)).strip()


def entry(name: str, definitions: list[ast.stmt]) -> list[str]:
    last = definitions[-1]
    if isinstance(last, ast.ClassDef):
        return _class(name, last)
    return [f"### tenon.{name}", "", f"```py\n{signature(last, f'tenon.{name}')}\n```", "", words(ast.get_docstring(last)), ""]


def _class(name: str, node: ast.ClassDef) -> list[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    lines = [f"### tenon.{name}", "", f"```py\nclass tenon.{name}{f'({bases})' if bases else ''}\n```", "", words(ast.get_docstring(node)), ""]
    fields = [member for member in node.body if isinstance(member, ast.AnnAssign) and not ast.unparse(member.target).startswith("_")]
    if fields:
        lines += ["| field | type |", "|---|---|", *(f"| `{ast.unparse(field.target)}` | `{ast.unparse(field.annotation).replace('|', chr(92) + '|')}` |" for field in fields), ""]
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and (not member.name.startswith("_") or member.name == "__call__"):
            is_property = any("property" in ast.unparse(decorator) for decorator in member.decorator_list)
            called = f"{name}.{member.name}" if member.name != "__call__" else name.lower()
            head = called + (f": {ast.unparse(member.returns)}" if member.returns else "") if is_property else signature(member, called)
            lines += [f"#### {name}.{member.name}", "", f"```py\n{head}\n```", "", words(ast.get_docstring(member)), ""]
    return lines


def page(root: pathlib.Path) -> str:
    """Everything public is in a group; a name in none would be an error of this page."""
    found = public(root)
    listed = [name for names in GROUPS.values() for name in names]
    if set(listed) != set(found):
        raise ValueError(f"the reference and tenon.__all__ differ: {sorted(set(listed) ^ set(found))}")
    lines = ["# Python reference", "", "What `import tenon` gives. [The guide](python.md) shows how it is used; types are checked by the package's own annotations.", ""]
    for group, names in GROUPS.items():
        lines += [f"## {group}", "", *(line for name in names for line in entry(name, found[name]))]
    return "\n".join(lines)
