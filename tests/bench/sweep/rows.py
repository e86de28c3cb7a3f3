"""The rows of one entry in one dtype: compiled against eager, in a process that may die of them."""
from __future__ import annotations

import dataclasses
import os
import resource
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

import tenon
from demo import measure
from tests.bench.sweep.operands import ELEMENTS, Program, program_of, scaled, tensors_of
from tests.bench.sweep.report import PROCESSES, SLOW
from tests.opinfo import samples
from tests.walks.process import messages
from tests.walks.verdict import how_it_ran

LONGEST = 0.3  # seconds that a call of eager may take
TIMEOUT = 90.0  # seconds that a row may take
MEMORY = 6 << 30  # bytes that a process may have beside what it starts with
Ways = dict[str, Callable]


@dataclasses.dataclass(frozen=True)
class Place:
    """What a row is about beside its entry and dtype."""

    size: str
    layout: str


PLACES = (*(Place(size, "contiguous") for size in ELEMENTS), Place("256 Ki", "transposed"), Place("256 Ki", "channels last"))


@dataclasses.dataclass(frozen=True)
class Job:
    """An entry in a dtype; for so many seconds a row, or without times."""

    name: str
    dtype: str
    places: tuple[Place, ...]
    seconds: float


class Left(Exception):
    """Why there is no row: nothing that is wrong."""


def rows_of(job: Job) -> list[dict]:
    """The rows of a job, those that are slow from three processes."""
    rows = {place: row | {"ratios": [row["ratio"]]} if "ratio" in row else row for place, row in _measured(job)}
    for _ in range(PROCESSES - 1):
        slow = tuple(place for place, row in rows.items() if "ratios" in row and max(row["ratios"]) < SLOW)
        for place, row in _measured(dataclasses.replace(job, places=slow)):
            if "ratio" in row:
                rows[place] = row | {"ratios": [*rows[place]["ratios"], row["ratio"]]}
    return [{"op": job.name, "dtype": job.dtype, **dataclasses.asdict(place), **row} for place, row in rows.items()]


def _measured(job: Job) -> Iterator[tuple[Place, dict]]:
    """Each place with its row; what ends a process is the row of the place that it was at, and the others have another process."""
    left = job.places
    while left:
        rows, end = messages(_send, (dataclasses.replace(job, places=left),), TIMEOUT)
        yield from zip(left, rows)
        if end and len(rows) < len(left):
            yield left[len(rows)], {"failed": end}
        left = left[len(rows) + 1 :] if end else ()


def values_of(job: Job) -> list[dict]:
    """The rows of a job from this process: what is not timed needs none of its own."""
    return [{"op": job.name, "dtype": job.dtype, **dataclasses.asdict(place), **row} for place, row in zip(job.places, _each(job))]


def _send(job: Job, pipe: Connection) -> None:
    used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    for row in _each(job):
        pipe.send(row)
    pipe.send(None)


def _each(job: Job) -> Iterator[dict]:
    entry, seen = samples.entries()[job.name], Seen()
    with warnings.catch_warnings(), torch.no_grad(), samples.own_seed():
        warnings.simplefilter("ignore")
        for place in job.places:
            yield _row(entry, job, place, seen)


@dataclasses.dataclass
class Seen:
    """What smaller rows told."""

    seconds: float = 0.0
    elements: int = 1
    view: bool = False


def _row(entry: Any, job: Job, place: Place, seen: Seen) -> dict:
    try:
        sample, program = _prepared(entry, job, place, seen)
    except Left as why:
        return {"left": str(why)}
    row: dict = {"call": program.text, "operands": [list(t.shape) for t in program.operands][:6]}
    try:
        tenon.reset()
        ways = {"eager": program.function(), "tenon": tenon.compile(program.function(), options={"llvm": {"swap_tiers": False}})}
        row |= _compared(entry, sample, program, ways)
        return row | (_timed(program, ways, job.seconds) if job.seconds else {})
    except Exception as error:  # noqa: BLE001: what compiled code raises and eager does not is a row
        return row | {"failed": f"{type(error).__name__}: {error}"[:200]}


def _prepared(entry: Any, job: Job, place: Place, seen: Seen) -> tuple[SampleInput, Program]:
    elements = ELEMENTS[place.size]
    if seen.view:
        raise Left("a view, which a smaller row has")
    if seen.seconds * elements / seen.elements > LONGEST:
        raise Left(f"eager takes too long: {seen.seconds:.2g} s for {seen.elements} elements")
    for sample in scaled(samples.samples_of(entry, job.dtype), elements, place.layout):
        program = program_of(entry.op, sample)
        try:
            seconds, view = _tried(program)
        except Left:
            raise
        except Exception:  # noqa: BLE001: the op has no such operands
            continue
        seen.seconds, seen.elements, seen.view = seconds, elements, view
        if seconds > LONGEST:
            raise Left(f"eager takes too long: {seconds:.2g} s")
        return sample, program
    raise Left("no sample can be scaled")


def _tried(program: Program) -> tuple[float, bool]:
    """Seconds of an eager call, and whether its results are views alone."""
    function, versions = program.function(), [t._version for t in program.operands]
    function(*program.operands)
    start = time.perf_counter()
    result = function(*program.operands)
    seconds = time.perf_counter() - start
    if versions != [t._version for t in program.operands]:
        raise Left("writes into its operands")
    results = tensors_of(SampleInput(torch.empty(0), args=(result,)))[1:]
    memory = {t.untyped_storage().data_ptr() for t in program.operands}
    return seconds, bool(results) and all(t.layout == torch.strided and t.untyped_storage().data_ptr() in memory for t in results)


def _compared(entry: Any, sample: SampleInput, program: Program, ways: Ways) -> dict:
    """How the program ran compiled, and what is wrong with its values."""

    def seeded(run: Any) -> Any:
        torch.manual_seed(0)
        return run(*program.operands)

    want, got = seeded(ways["eager"]), [seeded(ways["tenon"]) for _ in range(2)]
    verdict = how_it_ran(lambda: tenon.explain(program.function())(*program.operands))
    what = _wrong(entry, sample, got, want)
    return {"ran": verdict.kind, "why": verdict.why[:160]} | ({"wrong": what} if what else {})


def _wrong(entry: Any, sample: SampleInput, got: list, want: Any) -> str | None:
    if not any(samples.difference(entry, sample, result, want, None) for result in got):
        return None
    exact = samples.exact_result(entry, sample)
    return next((what for result in got if (what := samples.difference(entry, sample, result, want, exact))), None)


def _timed(program: Program, ways: Ways, seconds: float) -> dict:
    blocks = measure.interleaved_blocks(ways, program.operands, seconds, least=4)
    least = {name: min(times) for name, times in blocks.items()}
    middle = {name: statistics.median(times) for name, times in blocks.items()}
    return {
        "eager_us": round(least["eager"] * 1e3, 3),
        "tenon_us": round(least["tenon"] * 1e3, 3),
        "ratio": round(least["eager"] / least["tenon"], 4),
        "medians": round(middle["eager"] / middle["tenon"], 4),
        "load": round(os.getloadavg()[0], 1),
    }
