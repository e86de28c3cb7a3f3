"""The text of every kernel that programs compile, to compare two trees: what moves code must not change kernels.

    python -m tests.kernel_texts dump BEFORE                          # the bench's programs and networks
    python -m tests.kernel_texts dump BEFORE -- pytest tests/python   # or of any command
    python -m tests.kernel_texts compare BEFORE AFTER                 # 1 where they differ, with the first texts that do

A dump is JSON: how often each text (of `TENON_LOGS=kernel_code`, without the kernel's name) was compiled.
"""
from __future__ import annotations

import argparse
import collections
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys

KERNEL = re.compile(r"^\[tenon info\] kernel_code: [\w.-]+: kernel\d+: (?P<text>.*?)\n\n", re.M | re.S)


def texts_of(log: str) -> dict[str, int]:
    """The kernels in a log, each with how often it was compiled."""
    return dict(sorted(collections.Counter(match["text"] for match in KERNEL.finditer(log)).items()))


def dump(path: pathlib.Path, command: list[str]) -> int:
    """Runs a command and writes the kernels that it and its children compiled. Gives its exit code."""
    environment = dict(os.environ, TENON_LOGS="kernel_code", TENON_CACHE="off", PYTHONHASHSEED="0")
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    texts = texts_of(done.stdout)
    path.write_text(json.dumps(texts, indent=0))
    print(f"{len(texts)} kernels, {sum(texts.values())} compiles, exit code {done.returncode}: {path}")
    if done.returncode or not texts:
        print(done.stdout[-3000:], file=sys.stderr)
    return done.returncode or not texts


def compare(before: pathlib.Path, after: pathlib.Path, shown: int = 3) -> int:
    """Prints what only one of two dumps has. 0 where they are equal."""
    old, new = (json.loads(path.read_text()) for path in (before, after))
    gone, come = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    print(f"{len(old.keys() & new.keys())} alike, {len(gone)} only in {before}, {len(come)} only in {after}")
    for text in gone[:shown]:
        nearest = (difflib.get_close_matches(text, come, n=1, cutoff=0.3) or [""])[0]
        print("\n".join(difflib.unified_diff(text.splitlines(), nearest.splitlines(), str(before), str(after), lineterm="")))
    for text in come[: 0 if gone else shown]:
        print(f"only in {after}:\n{text}")
    return 1 if gone or come else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kernel_texts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    dumping = commands.add_parser("dump")
    dumping.add_argument("file", type=pathlib.Path)
    dumping.add_argument("command", nargs="*", metavar="-- COMMAND", help="what to run; default: the bench's programs and networks")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=pathlib.Path)
    comparing.add_argument("after", type=pathlib.Path)
    options = parser.parse_args()
    if options.what == "compare":
        return compare(options.before, options.after)
    return dump(options.file, options.command or [sys.executable, "-m", "tests.kernel_texts.programs"])


if __name__ == "__main__":
    sys.exit(main())
