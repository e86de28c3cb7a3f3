"""Work of a process of its own, so that what crashes there is a line of a report."""
from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from typing import Any


def in_a_process(work: Callable[[], Iterable[Any]]) -> tuple[list[Any], int]:
    """What the work yields, by way of JSON and as far as its process came, and the status with which that ended."""
    with tempfile.NamedTemporaryFile("w+") as report:
        child = os.fork()
        if child == 0:
            for row in work():
                print(json.dumps(row), file=report, flush=True)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        report.seek(0)
        return [json.loads(line) for line in report], status
