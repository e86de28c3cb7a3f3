"""``python -m tests.bench.sweep``: every op of torch's operator database, compiled and plain in turns, by dtype, size and layout.

A row is an op, a dtype, a number of elements and a layout. It is slow where compiled code has less than 0.95 of eager's speed, by the least
times of blocks, in three processes. `--report FILE...` tells what files of rows say, `--table FILE` writes it.
"""
from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import os
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.bench.sweep import report

DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "bool", "complex64")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.sweep", description=__doc__)
    parser.add_argument("--only", default="*", help="ops whose names match (shell patterns with commas between them)")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--sizes", help='with commas: "4 Ki,256 Ki,4 Mi"; default: all')
    parser.add_argument("--layouts", help="contiguous, transposed, channels last; default: all")
    parser.add_argument("--shard", default="1/1", help="i/n: the i-th of n parts")
    parser.add_argument("--resume", type=Path, default=Path("build/sweep.jsonl"), help="rows go to this file, and those that it has are not run again")
    parser.add_argument("--again", action="store_true", help="run rows that the file has, too")
    parser.add_argument("--seconds", type=float, default=0.12, help="measuring time a row; 0: values alone")
    parser.add_argument("--rows", type=int, default=0, help="so many rows that are drawn, instead of all")
    parser.add_argument("--threads", type=int, default=1, help="of eager and of compiled code")
    parser.add_argument("--report", type=Path, nargs="+", help="tell what these files say instead of running")
    parser.add_argument("--table", type=Path, help="with --report: write it there")
    return parser.parse_args()


def jobs(options: argparse.Namespace) -> Iterator:
    """What is to run and not in the file yet."""
    from tests.bench.sweep.rows import PLACES, Job
    from tests.opinfo.samples import OTHER_DTYPES, entries
    from tests.opinfo.samples import DTYPES as WALKED

    done = set() if options.again else {report.key(row) for row in report.read([options.resume])}
    part, parts = map(int, options.shard.split("/"))
    places = [p for p in PLACES if (not options.sizes or p.size in options.sizes.split(",")) and (not options.layouts or p.layout in options.layouts.split(","))]
    for dtype in options.dtypes.split(","):
        for name, entry in entries().items():
            if zlib.crc32(f"{name} {dtype}".encode()) % parts != part - 1 or not any(fnmatch.fnmatchcase(name, only) for only in options.only.split(",")):
                continue
            if (WALKED | OTHER_DTYPES)[dtype] not in entry.supported_dtypes("cpu"):
                continue
            if left := tuple(p for p in places if (name, dtype, p.size, p.layout) not in done):
                yield Job(name, dtype, left, options.seconds)


def drawn(all_jobs: list, rows: int) -> list:
    """So many jobs of one row each."""
    chosen = random.Random(0).sample(all_jobs, min(rows, len(all_jobs)))
    return [dataclasses.replace(job, places=job.places[:1]) for job in chosen]


def main() -> int:
    """Runs the command; 1 where values are wrong."""
    options = arguments()
    if options.report:
        text = report.text(report.read(options.report))
        options.table.write_text(text) if options.table else print(text)
        return 0
    os.environ |= {"OMP_NUM_THREADS": str(options.threads), "TENON_THREADS": str(options.threads), "TENON_CACHE": "0"}
    from tests.bench.sweep.rows import rows_of, values_of

    todo = list(jobs(options))
    todo = drawn(todo, options.rows) if options.rows else todo
    options.resume.parent.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with options.resume.open("a") as out:
        for i, job in enumerate(todo):
            for row in (rows_of if options.seconds else values_of)(job):
                print(json.dumps(row), file=out, flush=True)
                wrong += report.is_wrong(row)
                if report.is_wrong(row) or report.is_slow(row):
                    print(f"{i + 1}/{len(todo)}", report.line(row), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
