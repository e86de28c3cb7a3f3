"""What a report shows, as plain data for the page."""
from __future__ import annotations

import json
import linecache
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tenon._explain import Explanation, Line, Step
from tenon._graph import Graph
from tenon._report.layout import positions
from tenon._traced import ValueRef

AROUND = 3  # lines of a file shown around those that something is said of
LONGEST_CODE = 200_000  # characters of one kernel's code


def contents(name: str, explained: Explanation, lines: list[Line]) -> dict[str, Any]:
    """The report of a call of `name`; `lines` are what the logs claims, passes, fusion and kernel_code said."""
    said = defaultdict(list)
    for log, plugin, text in lines:
        said[log].append(f"{plugin}: {text}" if plugin else text)
    code = _code_by_loops(said["kernel_code"])
    ptx = _ptx_by_step(lines)
    return {
        "name": name,
        "summary": _summary(explained),
        "times": {phase: seconds * 1e3 for phase, seconds in explained.compile_times.items()},
        "segments": [{"graph": s.graph, "stop": s.break_reason, "guards": len(s.guards)} for s in explained.segments],
        "breaks": [{"reason": b.reason, "hint": b.hint, "stack": [[f.filename, f.lineno, f.name, f.line, f.colno, f.end_colno] for f in b.user_stack]} for b in explained.break_reasons],
        "guards": explained.guards,
        "graphs": [_graph(graph) for graph in explained.graphs],
        "backwards": [{"code": b.code, "kept": b.kept, "bytes": b.kept_bytes} for b in explained.backwards],
        "plans": explained.plans,
        "steps": [_step(step, ptx.get((step.program, step.step)) or code.get(step.loops.strip(), "")) for step in explained.steps],
        "files": _files(explained),
        "logs": {log: said[log] for log in ("claims", "fusion", "passes")},
    }


def _summary(explained: Explanation) -> dict[str, Any]:
    return {
        "graphs": explained.graph_count,
        "breaks": explained.graph_break_count,
        "ops": explained.op_count,
        "kernels": len(explained.steps),
        "microseconds": sum(step.microseconds for step in explained.steps if not math.isnan(step.microseconds)),
        "warm": sum(step.warm_microseconds for step in explained.steps if not math.isnan(step.warm_microseconds)),
        "peak": explained.peak_bytes,
        "unfused": explained.unfused_peak_bytes,
        "nodes": explained.nodes_by_backend,
    }


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, ValueRef):
        yield value.name
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _references(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _references(item)


def _graph(graph: Graph) -> dict[str, Any]:
    traced = graph.traced
    nodes = list[dict[str, Any]]()
    reads = list[list[int]]()
    made_by = dict[str, int]()

    def add(label: str, names: Iterator[str] | list[str], read: set[int], **about: Any) -> None:
        made_by.update((name, len(nodes)) for name in names)
        nodes.append({"label": label, **about})
        reads.append(sorted(read))

    for name, type_, source in traced.inputs:
        add(name, [name], set(), kind="input", type=type_, source=source)
    for copy, name, _ in traced.copies:
        add("copy", [copy.name], {made_by[name]} if name in made_by else set(), kind="op")
    ops = traced.op_names if len(traced.op_names) == len(traced.calls) else [getattr(call[1], "__name__", "call") for call in traced.calls]
    for op, (results, _, args, kwargs, types, (file, line, function, code)) in zip(ops, traced.calls):
        read = {made_by[name] for name in _references((args, kwargs)) if name in made_by}
        add(op.rsplit(".", 1)[-1], _references(results), read, kind="op", type=", ".join(types), call=op, file=file, line=line, function=function, code=code, result=" ".join(_references(results)))
    add("outputs", [], {made_by[name] for name in _references((traced.outputs, [value for _, value in traced.updates])) if name in made_by}, kind="output")
    drawn = positions(reads)
    return {"name": graph.name, "code": graph.code(), "backward": graph.is_backward, "nodes": nodes, "reads": reads, "x": [round(x, 2) for x, _ in drawn], "layer": [layer for _, layer in drawn]}


def _step(step: Step, code: str) -> dict[str, Any]:
    return {
        "program": step.program,
        "graph": step.graph,
        "step": step.step,
        "kind": step.kind,
        "name": step.name,
        "nodes": [[n.op, n.name, n.type, n.file, n.line, n.code, n.written] for n in step.nodes],
        "loops": step.loops,
        "code": code[:LONGEST_CODE],
        "alive": step.alive,
        "us": None if math.isnan(step.microseconds) else step.microseconds,
        "warm": None if math.isnan(step.warm_microseconds) else step.warm_microseconds,
        "bytes": step.bytes,
        "flops": step.flops,
    }


def _code_by_loops(said: list[str]) -> dict[str, str]:
    """The generated function of each kernel by its loops: a batch says each kernel's name with its loops, then its module as IR, then as assembly."""
    names = dict[str, str]()
    code = dict[str, str]()
    for text in said:
        text = text.removeprefix("llvm: ")
        if named := re.match(r"(\w+): (?=kernel|one block|\d+ blocks)", text):
            loops = text[named.end() :]
            names[named[1]] = loops[loops.index("kernel") :].strip()
        elif text.startswith("; ModuleID"):
            for name, function in _functions(text):
                if loops := names.get(name, ""):
                    code[loops] = function
            names = {}
    return code


def _ptx_by_step(lines: list[Line]) -> dict[tuple[int, int], str]:
    """The code of steps of plugins that say it as PTX, behind the steps, which name its functions. By program, numbered as in `Explanation.steps`, and step."""
    programs = dict[tuple[str, int], int]()
    steps = defaultdict[str, set[tuple[int, int]]](set)  # by the name of their function
    code = dict[tuple[int, int], str]()
    for log, plugin, text in lines:
        if log in ("steps", "kernel_times") and plugin:
            said = json.loads(text)
            program = programs.setdefault((plugin, said["program"]), len(programs) + 1)
            if "kernel" in said:
                steps[said["kernel"]].add((program, said["step"]))
        elif log == "kernel_code" and ".entry" in text:
            for found in re.finditer(r"^(?:\.visible )?\.entry (\w+)\(.*?^}", text, re.MULTILINE | re.DOTALL):
                for step in steps[found[1]]:
                    code.setdefault(step, found[0])
    return code


def _functions(module: str) -> Iterator[tuple[str, str]]:
    for found in re.finditer(r"^define [^\n]*@\"?([\w.]+)\"?\(.*?^}", module, re.MULTILINE | re.DOTALL):
        yield found[1], found[0]


def _files(explained: Explanation) -> dict[str, list[list[Any]]]:
    """By file: parts of it, each as its first line's number and lines."""
    wanted = defaultdict[str, set[int]](set)
    places = [(call[5][0], call[5][1]) for graph in explained.graphs for call in graph.traced.calls]
    places += [(frame.filename, frame.lineno) for stop in explained.break_reasons for frame in stop.user_stack]
    places += [(node.file, node.line) for step in explained.steps for node in step.nodes]
    for file, line in places:
        if file and line > 0:
            wanted[file].update(range(max(1, line - AROUND), line + AROUND + 1))
    return {file: parts for file in sorted(wanted) if (parts := _parts(linecache.getlines(file), sorted(wanted[file])))}


def _parts(lines: list[str], numbers: list[int]) -> list[list[Any]]:
    parts = list[list[Any]]()
    for number in numbers:
        if number > len(lines):
            break
        if not parts or parts[-1][0] + len(parts[-1][1]) != number:
            parts.append([number, []])
        parts[-1][1].append(lines[number - 1].rstrip("\n"))
    return parts


def packed(data: dict[str, Any]) -> str:
    """Text that no page takes for markup."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False)
