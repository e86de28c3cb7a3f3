"""python -m tests.opinfo: walks torch's operator database and reports native / opaque / refused / wrong by entry."""
from __future__ import annotations

import argparse
import fnmatch
import os
from multiprocessing.pool import ThreadPool
from pathlib import Path

from tests.opinfo import table


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.opinfo", description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of entries (shell patterns); default: all")
    parser.add_argument("--results", type=Path, default=Path("build/opinfo.jsonl"), help="one line an entry and dtype; finished ones are not run again")
    parser.add_argument("--jobs", type=int, default=1, help="entries at a time")
    parser.add_argument("--limit", type=int, default=0, help="stop after so many entries (0: none)")
    parser.add_argument("--seed", type=int, help="one sample of each entry and dtype, chosen by this number, instead of all")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one entry and dtype")
    parser.add_argument("--again", action="store_true", help="run entries that are finished, too")
    parser.add_argument("--table", type=Path, help="write the table of all results there")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from tests.opinfo.walk import Job, run
    from tests.opinfo.samples import DTYPES, entries

    known = table.read(options.results)
    jobs = [
        Job(name, dtype, options.timeout, options.seed)
        for name in entries()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in options.patterns)
        for dtype in DTYPES
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
        options.table.write_text(table.text(rows))
    table.summary(rows)
    return 1 if any(row.wrong for row in rows.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
