"""What it costs to hand a graph of 5,000 nodes over the plugin boundary; measured by the C++ program beside this file."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess


def measure() -> dict:
    """Milliseconds to write, verify and read the buffer. Empty when the program was not built."""
    build = pathlib.Path(os.environ.get("TENON_BUILD", "build/release"))
    program = build / "bin" / "bench_crossing"
    if not program.exists():
        return {}
    return json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
