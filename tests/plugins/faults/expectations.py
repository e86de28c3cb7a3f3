"""The fault matrix: every phase of a backend's life, every fault, every way to run it, and what must come of it."""
from __future__ import annotations

import itertools

PHASES = ("load", "entry", "create", "claim", "compile", "workspace", "execute", "give_output", "release", "serialise", "reload", "destroy")
THROWS = ("throw_exception", "throw_int")
DEATHS = ("abort", "segfault", "exit", "overflow_stack", "hang")
ANSWERS = ("null_answer", "wrong_size", "huge_size")
FAULTS = THROWS + DEATHS + ANSWERS + ("write_outside", "float_state", "leak_child")

# process:   the fault comes each time, and the probe sees it before the user's process does
# unlike:    the fault comes with graphs unlike the probe's samples, in the user's process
# isolated:  the same, with plugins.isolate
# checked:   as unlike, with plugins.check; of execute only
WAYS = ("process", "unlike", "isolated")
CHECKED = [("execute", fault, "checked") for fault in FAULTS if fault not in DEATHS]

REFUSED = "refused"        # the plugin is not used: its description says why, and where it was
FALLS = "falls"            # the next backend takes over: an event names backend and phase
RIGHT = "right"            # nothing is wrong for the user
IMPOSSIBLE = "impossible"  # docs/plugins.md says that it cannot be contained

# The reason of a refusal, by fault.
REASONS = {"throw_exception": "threw", "throw_int": "threw", "abort": "aborted", "segfault": "segfault", "exit": "exited", "overflow_stack": "stack_overflow",
           "hang": "timed_out"}

# Calls that have no such answer.
NO_ANSWER = {(phase, fault) for phase in ("load", "release", "destroy") for fault in ANSWERS} | {("create", "wrong_size"), ("create", "huge_size")}

# Phases with no graph: the probe meets them as the user's process does.
WITHOUT_GRAPH = ("load", "entry", "create", "destroy")

# What the helper does not see when the fault comes with the user's graphs only.
IN_PROCESS = {"unlike": ("claim", "compile", "workspace", "execute", "give_output", "release"), "isolated": ("execute", "give_output")}

# The backend's artefacts are stored only where they leave the helper.
STORED_ONLY = ("serialise", "reload")

# What an answer leads to in the process; elsewhere the next backend takes over.
HARMLESS = {("create", "null_answer"), ("workspace", "wrong_size"), ("create", "write_outside"), ("claim", "write_outside"), ("compile", "write_outside"),
            ("reload", "write_outside")}


def expected(phase: str, fault: str, way: str) -> str:
    """The one table."""
    if fault in ("float_state", "leak_child") or (phase, fault) in HARMLESS:
        return RIGHT
    if phase in WITHOUT_GRAPH:
        return REFUSED
    if way == "checked":
        return FALLS
    if phase == "execute" and fault == "null_answer":
        return IMPOSSIBLE  # memory that was not written looks like memory that was
    ends_process = fault in DEATHS or fault == "write_outside"
    if way == "process" and (ends_process or fault in THROWS):
        return REFUSED
    if ends_process and phase in IN_PROCESS.get(way, ()):
        return IMPOSSIBLE
    if way != "isolated" and phase in STORED_ONLY:
        return RIGHT
    if way != "isolated" and phase == "release":
        return RIGHT  # what it throws has nothing to fail
    if phase == "give_output" and fault in THROWS:
        return RIGHT  # the numbers were taken before the tensor is given back
    if way == "isolated" and phase == "compile" and fault in ("wrong_size", "huge_size"):
        return RIGHT  # of the artefact that stays in the helper
    return FALLS


def matrix() -> list[tuple[str, str, str]]:
    return [case for case in itertools.product(PHASES, FAULTS, WAYS) if case[:2] not in NO_ANSWER] + CHECKED
