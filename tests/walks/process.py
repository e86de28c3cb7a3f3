"""One entry of the database in a process of its own, so that a crash or a hang is a result and not the end of the walk."""
from __future__ import annotations

import dataclasses
import importlib
import itertools
import multiprocessing
import random
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from tests.walks.table import Row
from tests.walks.verdict import Verdict


@dataclasses.dataclass(frozen=True)
class Job:
    """What to walk: an entry in a dtype; all samples, or one of the first eight that the seed chooses. The module `database` has
    entries(), samples_of(entry, dtype) and judge(entry, sample)."""

    database: str
    name: str
    dtype: str
    timeout: float
    seed: int | None = None
    first: bool = False  # the first sample alone


def run(job: Job) -> Row:
    """Walks the samples of one entry."""
    verdicts, end = messages(_walk, (job,), job.timeout)
    return _row(job, verdicts + ([Verdict("wrong", end)] if end else []))


def messages(target: Callable[..., None], args: tuple, timeout: float) -> tuple[list, str]:
    """What `target(*args, pipe)` sends from a process of its own, up to None; and how the process ended where no None came in time."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=target, args=(*args, theirs), daemon=True)
    child.start()
    theirs.close()
    received = _collect(ours, timeout)
    finished = bool(received) and received[-1] is None
    child.join(0.5 if finished else 0.1)
    end = "" if finished else "took too long" if child.is_alive() else f"the process died ({child.exitcode})"
    child.kill()
    child.join()
    return [one for one in received if one is not None], end


def _collect(pipe: Connection, timeout: float) -> list:
    verdicts: list = []
    while pipe.poll(timeout):
        try:
            verdicts.append(pipe.recv())
        except EOFError:
            break
        if verdicts[-1] is None:
            break
    return verdicts


def _walk(job: Job, pipe: Connection) -> None:
    database = importlib.import_module(job.database)
    entry = database.entries()[job.name]
    for i, sample in _chosen(database.samples_of(entry, job.dtype), job):
        verdict = database.judge(entry, sample)
        pipe.send(Verdict(verdict.kind, f"sample {i}: {verdict.why}" if verdict.why else ""))
    pipe.send(None)


def _chosen(samples: Iterator[Any], job: Job) -> Iterator[tuple[int, Any]]:
    if job.first:
        return itertools.islice(enumerate(samples), 1)
    if job.seed is None:
        return enumerate(samples)
    first = list(enumerate(itertools.islice(samples, 8)))
    return iter(random.Random(f"{job.seed} {job.name} {job.dtype}").sample(first, min(1, len(first))))


def _row(job: Job, verdicts: list[Verdict]) -> Row:
    counts = Counter(v.kind for v in verdicts)
    whys = [v.why for kind in ("wrong", "refused", "opaque", "skipped") for v in verdicts if v.kind == kind]
    return Row(job.name, job.dtype, *(counts[k] for k in ("native", "opaque", "refused", "wrong", "skipped")), whys[0] if whys else "")
