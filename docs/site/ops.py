"""The page of supported ops: the catalogue as the command tells it, the functions that it answers to, and what the walks over databases of calls have found."""
from __future__ import annotations

import json
import pathlib
import re
import subprocess

from docs.site.markdown import cell, code

WALKS = {"PyTorch": ("tests/opinfo/table.md", "tests/opinfo/gradients.md"), "NumPy": ("tests/array_api/table.md", None)}
WORST = ("native", "opaque", "refused", "wrong")


def catalogue(build: pathlib.Path) -> list[dict]:
    return json.loads(subprocess.run([build / "bin/tenon", "ops", "list", "--json"], check=True, capture_output=True, text=True).stdout)


def walk(table: str) -> dict[str, tuple[str, str]]:
    """By entry of a database: how its worst sample ended, and the first reason."""
    found: dict[str, tuple[str, str]] = {}
    for line in re.findall(r"^\| (.*) \|$", table, re.M)[2:]:
        entry, _, *counts, reason = (re.split(r"(?<!\\) ?\| ?", line) + [""])[:7]
        if not all(count.strip().isdigit() for count in counts):
            continue
        worst = max((n for n, count in enumerate(counts) if int(count)), default=0)
        before = WORST.index(found[entry][0]) if entry in found else -1
        if worst > before:
            found[entry] = (WORST[worst], re.sub(r"^sample \d+: (?:.*?\]: )?", "", reason.strip()) if worst > 1 else "")
    return found


def aliases(ops: list[dict], library: str) -> list[tuple[str, str, str]]:
    """Functions of a library that are ops: name, parameters, op."""
    found = []
    for op in ops:
        for alias in op["aliases"]:
            if match := re.match(rf"({library}\.[\w.]+)(\(.*\))$", alias):
                found.append((match[1], match[2], op["name"]))
    return sorted(found)


def followed(root: pathlib.Path) -> dict[str, list[str]]:
    """Functions written in C that a capture follows, by module of Python's library: the frontend's own table."""
    table = (root / "plugins/frontends/python/builtins/table.cpp").read_text()
    found: dict[str, list[str]] = {}
    for module, names in re.findall(r'\{"(\w+)", BuiltinClass::\w+,\s*"([^"]*)"', table) + re.findall(r'\{"(\w+)", "(\w+)", (?:\w+<|&?\w+\b)', table):
        if not module.startswith("_") and module != "torch":
            found.setdefault(module, []).extend(name for name in names.split() if not name.startswith("_"))
    return {module: sorted(set(names)) for module, names in sorted(found.items())}


def page(root: pathlib.Path, build: pathlib.Path) -> str:
    ops = catalogue(build)
    lines = [
        "# Supported operations", "",
        "What is no op of Tenon's is no error: a call of another function of torch or NumPy is a node of the graph that the library itself runs, or, where it cannot be "
        "known what the call does, the graph ends there for one instruction. `tenon ops show NAME` and `tenon.explain` say the same of one op and of one program.", "",
    ]  # fmt: skip
    for library, (forward, backward) in WALKS.items():
        lines += _by_library(library, walk((root / forward).read_text()), walk((root / backward).read_text()) if backward else {})
    lines += ["## The catalogue", "", f"{len(ops)} ops. *Body*: a formula of scalars, which becomes loops; *decomposition*: other ops.", "",
              "| op | arguments and results | meaning | gradient |", "|---|---|---|---|"]  # fmt: skip
    lines += [f"| `{op['name']}` | {code(op['schema'])} | {cell(op['meaning'])} | {cell(op['gradient'])} |" for op in ops] + [""]
    for library in ("torch", "numpy"):
        found = aliases(ops, library)
        lines += [f"## Functions of {library} that are ops", "", f"{len(found)} names and signatures; `a -> b` says that the parameter is `b` of the op.", "",
                  "| function | parameters | op |", "|---|---|---|", *(f"| `{name}` | {code(parameters)} | `{op}` |" for name, parameters, op in found), ""]  # fmt: skip
    lines += ["## Functions of Python that are followed", "", "Written in C, and part of a capture as they are; so are methods of built-in types, and functions of torch and NumPy. Functions that are written in Python "
              "are evaluated, whatever they are. Any other C function ends the graph for one instruction.", "", "| module | functions and methods |", "|---|---|"]  # fmt: skip
    lines += [f"| `{module}` | {', '.join(f'`{name}`' for name in names)} |" for module, names in followed(root).items()]
    return "\n".join([*lines, ""])


def _by_library(library: str, forward: dict[str, tuple[str, str]], backward: dict[str, tuple[str, str]]) -> list[str]:
    of = "operator database (OpInfo), all samples and dtypes" if library == "PyTorch" else "functions of the array API standard"
    counts = ", ".join(f"{sum(verdict == one for verdict, _ in forward.values())} {one}" for one in WORST)
    gradients = " Of gradients, first and second order, likewise." if backward else ""
    lines = [f"## {library}", "",
             f"{library}'s {of}, each compared with plain execution. An entry counts as its worst sample: *native* runs on Tenon's own kernels, *opaque* has a node that the "
             f"library runs, *refused* runs as plain Python, for the reason that is named first.{gradients} {len(forward)} entries: {counts}.", ""]  # fmt: skip
    whole = [entry for entry, (verdict, _) in forward.items() if {verdict, backward.get(entry, ("native", ""))[0]} == {"native"}]
    lines += [f"Native{', with gradients where the library has them' if backward else ''}: {', '.join(f'`{entry}`' for entry in whole)}.", "", "The others:", "",
              f"| entry | calls |{' gradients |' if backward else ''} why not compiled |", f"|---|---|{'---|' if backward else ''}---|"]  # fmt: skip
    for entry, (verdict, reason) in forward.items():
        gradient, why = backward.get(entry, ("", ""))
        if entry not in whole:
            lines.append(f"| `{entry}` | {verdict} |{f' {gradient} |' if backward else ''} {cell(reason or why)} |")
    return [*lines, ""]
