"""Compares random programs, captured and plain, until the time is up.

python tests/fuzz_python [--seed N] [--seconds S | --count N] [--engine probe|tenon|torch] [--show] [--reasons]

Prints each program that differs with its seed; `--seed N --count 1 --show` shows it again. Exit status 1 when one differed or crashed.
Programs run in child processes, so that a crash is found too.
"""
import argparse
import collections
import os
import pathlib
import pickle
import signal
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import compare  # noqa: E402
import programs  # noqa: E402

BATCH = 50


def one(seed, engine):
    source = programs.Program(seed, engine.arrays).text()
    try:
        compile(source, "<fuzz>", "exec")
    except SyntaxError:  # a walrus where Python has none
        return "invalid", "", source
    try:
        return (*compare.run(source, seed, engine), source)
    except compare.Differs as difference:
        return "differs", str(difference), source
    except Exception:
        return "differs", "the comparison itself failed: " + traceback.format_exc(), source


def batch(seeds, engine):
    """The verdicts of some seeds from a child process, which has what is imported here; those after a crash are missing."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "wb") as out:
            for seed in seeds:
                signal.setitimer(signal.ITIMER_PROF, 10)  # seconds of processor time: a program that does not end is found as a crash,
                signal.alarm(300)                         # one that waits for ever too
                pickle.dump((seed, one(seed, engine)), out)
                out.flush()
        os._exit(0)
    os.close(write)
    results = []
    with os.fdopen(read, "rb") as inp:
        while True:
            try:
                results.append(pickle.load(inp))
            except EOFError:
                break
    _, status = os.waitpid(child, 0)
    return results, status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--engine", choices=("probe", "tenon", "torch"), default="probe")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--reasons", action="store_true")
    options = parser.parse_args()
    engine = {"probe": compare.Probe, "tenon": compare.Tenon, "torch": lambda: compare.Tenon(torch=True)}[options.engine]()
    print(f"seed {options.seed}, engine {options.engine}, Python {sys.version.split()[0]}", flush=True)
    end, seed, counts, reasons = time.monotonic() + options.seconds, options.seed, collections.Counter(), collections.Counter()
    while time.monotonic() < end and seed < options.seed + options.count:
        seeds = range(seed, min(seed + BATCH, options.seed + options.count))
        results, status = batch(seeds, engine)
        if len(results) < len(seeds):
            bad = seeds[len(results)]
            results.append((bad, ("crash", f"the process ended with status {status}", programs.Program(bad, options.engine != "probe").text())))
        for at, (verdict, why, source) in results:
            counts[verdict] += 1
            if verdict == "break":
                reasons[why.split(" [")[0]] += 1
            if options.show or verdict in ("differs", "crash"):
                print(f"---- seed {at}: {verdict}: {why}\n{source}", flush=True)
        seed = results[-1][0] + 1
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    if options.reasons:
        for why, count in reasons.most_common(30):
            print(f"{count:6} {why}")
    return 1 if counts["differs"] or counts["crash"] else 0


sys.exit(main())
