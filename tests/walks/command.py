"""The command of a walk."""
from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import importlib
import os
from multiprocessing.pool import ThreadPool
from pathlib import Path

from tests.walks import table
from tests.walks.process import Job, run


COMPILED = """An entry counts as its worst sample: *native* runs on Tenon's
own kernels; *opaque* has a node that another library runs; *refused* ran eagerly; *wrong* differs from eager."""


@dataclasses.dataclass(frozen=True)
class Walk:
    """What a command walks over: the package that it is the command of, with a module that has the database."""

    package: str
    title: str
    about: str
    module: str = "samples"
    legend: str = COMPILED
    options: str = ""  # that say which database is meant

    @property
    def command(self) -> str:
        return f"python -m {self.package}{self.options} --table {self.folder}/{'table' if self.module == 'samples' else self.module}.md"

    @property
    def folder(self) -> Path:
        return Path(*self.package.split("."))


def arguments(walk: Walk) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {walk.package}", description=walk.about)
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of entries (shell patterns); default: all")
    parser.add_argument("--results", type=Path, default=Path("build", walk.folder.name + ".jsonl"), help="one line an entry and dtype; finished ones are not run again")
    parser.add_argument("--jobs", type=int, default=1, help="entries at a time")
    parser.add_argument("--limit", type=int, default=0, help="stop after so many entries (0: none)")
    parser.add_argument("--seed", type=int, help="one sample of each entry and dtype, chosen by this number, instead of all")
    parser.add_argument("--first", action="store_true", help="the first sample of each entry and dtype instead of all")
    parser.add_argument("--dtypes", help="only these, with commas between them; also those that are not walked by default")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one entry and dtype")
    parser.add_argument("--again", action="store_true", help="run entries that are finished, too")
    parser.add_argument("--table", type=Path, help="write the table of all results there")
    return parser.parse_args()


def main(walk: Walk) -> int:
    """Runs the command; 1 where a sample is wrong."""
    options = arguments(walk)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    database = importlib.import_module(f"{walk.package}.{walk.module}")
    known = table.read(options.results)
    jobs = [
        Job(database.__name__, name, dtype, options.timeout, options.seed, options.first)
        for name in database.entries()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in options.patterns)
        for dtype in (options.dtypes.split(",") if options.dtypes else database.DTYPES)
        if options.again or (name, dtype) not in known
    ]
    jobs = jobs[: options.limit] if options.limit else jobs
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPool(options.jobs) as pool, options.results.open("a") as out:
        for row in pool.imap_unordered(run, jobs):
            table.append(out, row)
            table.show(row)
    rows = table.read(options.results)
    if options.table:
        options.table.write_text(table.text(rows, walk.title, walk.command, walk.legend))
    table.summary(rows)
    return 1 if any(row.wrong for row in rows.values()) else 0
