"""What a call and a compile cost besides the kernels; measured by the C++ program beside this file."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess


def measure() -> dict:
    """Nanoseconds of a run, milliseconds of a compile of 5,000 nodes. Empty when the program was not built."""
    build = pathlib.Path(os.environ.get("TENON_BUILD", "build/release"))
    program = build / "bin" / "bench_runtime"
    if not program.exists():
        return {}
    return json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
