"""What was captured, where it broke, and what it cost."""
from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, overload

from tenon import _tenon
from tenon._compile import Backend, settings_like, uncompiled
from tenon._errors import ConfigError, did_you_mean
from tenon._graph import Graph


@dataclasses.dataclass(frozen=True)
class Frame:
    """One entry of the user's stack."""

    filename: str
    lineno: int
    name: str
    line: str
    colno: int = -1  # the part of the stripped line that runs; -1 where it is not known
    end_colno: int = -1

    def __str__(self) -> str:
        carets = f"\n      {' ' * self.colno}{'^' * (self.end_colno - self.colno)}" if self.colno >= 0 else ""
        return f'    File "{self.filename}", line {self.lineno}, in {self.name}\n      {self.line}{carets}'


@dataclasses.dataclass(frozen=True)
class BreakReason:
    """Why a graph ended: in words, what to do about it, and the user's stack, innermost last."""

    reason: str
    hint: str
    user_stack: list[Frame]

    def __str__(self) -> str:
        return "\n".join([self.reason, *map(str, self.user_stack), f"    Hint: {self.hint}"])


@dataclasses.dataclass(frozen=True)
class Backward:
    """The gradients of some results of a graph: a graph of its own, and what is kept for it from the call to the backward."""

    code: str  # as text of the IR
    kept: list[str]  # a line a tensor: type, bytes, why
    kept_bytes: int  # of what the program has not otherwise

    def __str__(self) -> str:
        return "\n".join([f"keeps {self.kept_bytes} bytes", *(f"  {line}" for line in self.kept), self.code])


@dataclasses.dataclass(frozen=True)
class Segment:
    """A part of the call that was captured as one, or could not be: numbers in the lists of its :class:`Explanation`."""

    graph: int | None  # None: it computes nothing
    break_reason: int | None  # why it ended; None where the call did
    guards: range


@dataclasses.dataclass(frozen=True)
class StepNode:
    """A node that a step computes. Of nodes that passes have made, the place is of what they were made of, or empty."""

    op: str
    written: bool = True  # its result is memory; else it is fused into others of the step
    name: str = ""
    type: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    code: str = ""


@dataclasses.dataclass(frozen=True)
class Step:
    """A kernel, a product of matrices or a call of a library that a backend runs for a graph."""

    program: int  # steps of the same number are of one group of nodes, in their order
    graph: int | None  # of the explanation's graphs; None for a backward
    step: int
    kind: str  # "kernel", "product", "library"
    name: str  # what profilers and traces call it: "fused_sin_add_mean"
    nodes: list[StepNode]
    loops: str  # as text; of a product, of what follows it
    alive: float  # bytes of the group's own values that are alive
    microseconds: float  # of its run, the first; not a number where it has not run, or its backend tells no times
    warm_microseconds: float  # of its fastest run in later calls; not a number where there were none
    bytes: float  # of what it reads and writes
    flops: float

    @property
    def ops(self) -> str:
        """The ops of its nodes, those fused into others too."""
        return " ".join(node.op for node in self.nodes)


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The report of :func:`explain`; ``str()`` of it is for people."""

    graphs: list[Graph]
    break_reasons: list[BreakReason]
    guards: list[str]
    compile_times: dict[str, float]  # seconds by phase
    plans: list[dict[str, Any]]  # of each graph that libtenon runs: steps with their backends, and memory
    result: Any
    backwards: list[Backward] = dataclasses.field(default_factory=list)
    segments: list[Segment] = dataclasses.field(default_factory=list)
    steps: list[Step] = dataclasses.field(default_factory=list)  # with ``profile=True``, of backends that tell

    @property
    def graph_count(self) -> int:
        """Graphs with at least one op."""
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        """Places where a graph ended before the program did."""
        return len(self.break_reasons)

    @property
    def ops_per_graph(self) -> list[list[str]]:
        """The names of the ops of each graph, as captured."""
        return [graph.op_names for graph in self.graphs]

    @property
    def op_count(self) -> int:
        """Ops of all graphs, as captured."""
        return sum(len(ops) for ops in self.ops_per_graph)

    @property
    def nodes_by_backend(self) -> dict[str, int]:
        """Nodes that each backend runs, after passes; those that a backend could not compile count for the one that runs them."""
        nodes: Counter[str] = Counter()
        for plan in self.plans:
            for step in _groups(plan["steps"]):
                nodes[step["backend"]] += step["nodes"]
        return dict(nodes)

    @property
    def peak_bytes(self) -> int:
        """The most bytes that the call held beside inputs and constants, in one graph: intermediates, scratch and outputs."""
        return max((plan["memory"]["peak_bytes"] for plan in self.plans), default=0)

    @property
    def unfused_peak_bytes(self) -> int:
        """What running the same graph node by node would hold."""
        return max((plan["memory"]["unfused_peak_bytes"] for plan in self.plans), default=0)

    def __str__(self) -> str:
        parts = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}", f"Op Count: {self.op_count}"]
        parts += [f"Break {i + 1}: {reason}" for i, reason in enumerate(self.break_reasons)]
        parts += [f"Graph {i + 1}:\n{graph.code()}" for i, graph in enumerate(self.graphs)]
        parts += [f"Backward {i + 1}: {backward}" for i, backward in enumerate(self.backwards)]
        parts.append("Guards:\n" + "\n".join(f"  {guard}" for guard in self.guards))
        parts.append("Compile times: " + ", ".join(f"{phase} {seconds * 1e3:.2f} ms" for phase, seconds in self.compile_times.items()))
        if self.plans:
            parts.append("Nodes: " + ", ".join(f"{count} on {name}" for name, count in self.nodes_by_backend.items()))
            parts += [f"  {'' if math.isnan(step.microseconds) else f'{step.microseconds:.1f} us':>12}  {step.kind:<8} {step.name}" for step in self.steps]
            parts.append(f"Peak memory: {self.peak_bytes / 1e6:.2f} MB (node by node: {self.unfused_peak_bytes / 1e6:.2f} MB)")
        return "\n".join(parts)


def _groups(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The groups among steps, those of branches included."""
    for step in steps:
        if step["kind"] == "group":
            yield step
        for branch in step.get("branches", ()):
            yield from _groups(branch)


P = ParamSpec("P")


@overload
def explain(
    fn: Callable[P, object],
    *,
    backend: Backend | None = None,
    mode: str | None = None,
    dynamic: bool | None = None,
    options: dict[str, Any] | None = None,
    profile: bool = False,
) -> Callable[P, Explanation]: ...
@overload
def explain(
    fn: Callable[..., object],
    first: Any,
    /,
    *args: Any,
    backend: Backend | None = None,
    mode: str | None = None,
    dynamic: bool | None = None,
    options: dict[str, Any] | None = None,
    profile: bool = False,
) -> Explanation: ...
def explain(fn: Callable[..., object], *args: Any, profile: bool = False, **options: Any) -> Any:
    """Gives a function that takes the arguments of `fn`, captures and runs it once, and reports; with arguments of `fn` at hand, the report.

    ``explain(fn)(x, scale=2)`` and ``explain(fn, x)`` give an :class:`Explanation`. `options` are those of ``compile``; what is not given is as `fn` was compiled with, where it is a compiled function or module.
    With `profile` the steps that backends run for the graphs are told, with the time that each took in this one run.
    """
    settings = settings_of("explain", fn, options)
    plain = uncompiled(fn)

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        return explained_with_logs(plain, settings, args, kwargs, "steps,kernel_times" if profile else "")[0]

    return explained(*args) if args else explained


def settings_of(who: str, fn: Callable[..., object], options: dict[str, Any]) -> dict[str, Any]:
    """What a function is to be captured with, for `who` asks."""
    known = ("backend", "mode", "dynamic", "options")
    if unknown := [name for name in options if name not in known]:
        raise TypeError(f"{who}() got an unexpected keyword argument {unknown[0]!r}{did_you_mean(unknown[0], known)}")
    if not callable(fn):
        raise ConfigError(f"tenon.{who} takes a function, a callable object or a module, got {type(fn).__name__}")
    return settings_like(fn, **options)


Line = tuple[str, str, str]  # log, plugin, text


def explained_with_logs(plain: Callable[..., object], settings: dict[str, Any], args: Any, kwargs: Any, logs: str, runs: int = 1) -> tuple[Explanation, list[Line]]:
    """Explains a call, which is made `runs` times, and gives what the host's logs of these names have said meanwhile."""
    lines: list[Line] = []
    if logs:
        _tenon.begin_collecting_logs(logs)
    try:
        found = _tenon.explain_capture(plain, args, kwargs, settings, runs)
    finally:
        if logs:
            lines = _tenon.end_collecting_logs()
    breaks = [BreakReason(b["reason"], b["hint"], [Frame(*frame) for frame in b["stack"]]) for b in found["breaks"]]
    graphs = [Graph(traced) for traced in found["graphs"]]
    backwards = [Backward(*b) for b in found["backwards"]]
    segments = [Segment(None if graph < 0 else graph, None if stop < 0 else stop, range(first, end)) for graph, stop, first, end in found["segments"]]
    plans, times = list(found["plans"]), dict(found["compile_times"])
    return Explanation(graphs, breaks, list(found["guards"]), times, plans, found["result"], backwards, segments, _steps(lines)), lines


@dataclasses.dataclass
class _Said:
    """What logs say of a step."""

    outline: dict[str, Any]
    program: int
    graph: int | None
    first: dict[str, Any] = dataclasses.field(default_factory=dict)
    warm: list[float] = dataclasses.field(default_factory=list)


def _steps(lines: list[Line]) -> list[Step]:
    said = dict[tuple[str, int, int], _Said]()
    alive = dict[int, list[float]]()
    programs = dict[tuple[str, int], int]()  # each plugin counts its own
    graph: int | None = None
    again = False
    for log, plugin, text in lines:
        if log not in ("steps", "kernel_times"):
            continue
        line = json.loads(text)
        if not plugin:  # of the frontend
            again |= "run" in line
            graph = line.get("graph")
            continue
        program = programs.setdefault((plugin, line["program"]), len(programs) + 1)
        if "alive" in line:
            alive[program] = line["alive"]
        elif log == "steps":
            said[plugin, line["program"], line["step"]] = _Said(line, program, graph)
        elif step := said.get((plugin, line["program"], line["step"])):
            if again:
                step.warm.append(line["us"])
            elif not step.first:
                step.first = line
    return [_step(step, alive.get(step.program, [])) for step in said.values()]


def _step(said: _Said, alive: list[float]) -> Step:
    outline, ran = said.outline, said.first
    number = outline["step"]
    return Step(
        program=said.program,
        graph=said.graph,
        step=number,
        kind=outline["kind"],
        name=outline["name"],
        nodes=[StepNode(**node) for node in outline["nodes"]],
        loops=outline.get("loops", ""),
        alive=alive[number] if number < len(alive) else 0.0,
        microseconds=ran.get("us", math.nan),
        warm_microseconds=min(said.warm, default=math.nan),
        bytes=ran.get("bytes", 0.0),
        flops=ran.get("flops", 0.0),
    )
