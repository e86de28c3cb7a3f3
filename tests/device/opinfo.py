"""torch's operator database on the card, with eager as the judge: python3 opinfo.py [SECONDS [SAMPLES [ENTRY…]]], so many samples of each entry and dtype.

Several processes share the entries; one in which all work on the card has ended is followed by another, behind the entry that ended it."""
from __future__ import annotations

import collections
import itertools
import json
import os
import subprocess
import sys
import threading
import time

ORDER = ["wrong", "refused", "opaque", "native", "skipped"]  # an entry counts as its worst sample


def walk(shard: int, shards: int, first: int, until: float, count: int, names: list[str]) -> None:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    import tenon
    from tests.opinfo import samples

    tenon.compile(lambda x: x + 1)(torch.ones(1, device=samples.DEVICE))  # which opens the device, also where TENON_TEST_BACKEND is one of the host
    mine = [(name, entry) for name, entry in samples.entries().items() if not names or name in names][shard::shards]
    for number, (name, entry) in enumerate(mine[first:], first):
        for dtype in samples.DTYPES:
            if time.time() > until:
                return
            print(json.dumps({"number": number, "entry": name, "dtype": dtype, "kind": "begun"}), flush=True)
            verdicts = []
            try:
                for sample in itertools.islice(samples.samples_of(entry, dtype), count):
                    verdicts.append(samples.judge(entry, sample))
                    if verdicts[-1].kind == "wrong":
                        torch.cuda.synchronize()  # which raises where nothing runs any more
            except Exception as problem:
                print(json.dumps({"number": number, "entry": name, "dtype": dtype, "kind": "wrong", "detail": f"{problem!r}"[:400]}), flush=True)
                if "CUDA error" in str(problem):
                    os._exit(1)
                continue
            worst = min(verdicts, key=lambda v: ORDER.index(v.kind), default=None)
            if worst:
                print(json.dumps({"number": number, "entry": name, "dtype": dtype, "kind": worst.kind, "detail": worst.why[:400]}), flush=True)


def follow(shard: int, shards: int, until: float, count: int, names: list[str], rows: list[dict]) -> None:
    first = 0
    while time.time() < until:
        command = [sys.executable, "-X", "faulthandler", __file__, "walk", str(shard), str(shards), str(first), str(until), str(count), *names]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        mine = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        rows.extend(mine)
        if ran.returncode == 0:
            return
        if not mine:
            rows.append({"entry": f"all of part {shard}", "dtype": "any", "kind": "wrong", "detail": ran.stderr[-600:]})
            return
        if mine[-1]["kind"] == "begun":
            rows.append(mine[-1] | {"kind": "wrong", "detail": f"the process ended with {ran.returncode}: {ran.stderr[-400:]}"})
        first = mine[-1]["number"] + 1


def main() -> int:
    until = time.time() + float(sys.argv[1] if len(sys.argv) > 1 else 240)
    count, shards, rows = int(sys.argv[2] if len(sys.argv) > 2 else 6), max(1, (os.cpu_count() or 2) - 2), []
    threads = [threading.Thread(target=follow, args=(n, shards, until, count, sys.argv[3:], rows)) for n in range(shards)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = [row for row in rows if row["kind"] != "begun"]
    for row in sorted((row for row in done if row["kind"] == "wrong"), key=lambda row: row["entry"]):
        print(f"WRONG {row['entry']} {row['dtype']}: {row['detail']}")
    print(dict(collections.Counter(row["kind"] for row in done)), "of entries and dtypes;", "the time was over before all were done" if time.time() > until else "all")
    return 1 if any(row["kind"] == "wrong" for row in done) else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["walk"]:
        walk(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]), sys.argv[7:])
    else:
        sys.exit(main())
