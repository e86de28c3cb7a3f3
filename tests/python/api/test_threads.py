"""On how many threads compiled programs run."""
import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch")

PROGRAM = textwrap.dedent(
    """
    import contextlib, math, os, sys, time
    import torch
    import tenon

    def ticks():
        # Processor time by thread, from proc(5). A thread may end between being listed and being read.
        spent = {}
        for task in os.listdir("/proc/self/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/self/task/{task}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
                spent[task] = int(fields[11]) + int(fields[12])
        return spent

    torch.set_num_threads(int(sys.argv[1]))
    product = tenon.compile(lambda a: a @ a)
    a = torch.randn(512, 512)
    with torch.no_grad():
        ready = time.monotonic() + 2
        while time.monotonic() < ready:  # what is compiled beside the first calls is there then, and its thread rests
            product(a)
        before = ticks()
        while max(now - before.get(task, 0) for task, now in ticks().items()) < 30:
            for _ in range(20):
                product(a)
    spent = [now - before.get(task, 0) for task, now in ticks().items()]
    print(math.ceil(sum(spent) / max(spent) - 0.15))  # at once: where threads come late, others take their turns
    """
)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
@pytest.mark.parametrize("wanted", [1, 2])
def test_as_many_threads_work_as_torch_is_told(wanted):
    ran = subprocess.run([sys.executable, "-c", PROGRAM, str(wanted)], capture_output=True, text=True, timeout=120)
    assert ran.stdout.split() == [str(wanted)], ran.stderr
