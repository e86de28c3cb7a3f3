"""The console script ``tenon``: starts the program of that name that lies inside the package."""
from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    """Replaces this process by the command."""
    program = pathlib.Path(__file__).parent / "bin" / "tenon"
    # The command starts `python3` for programs in Python: the one that this script runs on comes first.
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    os.execv(program, [str(program), *sys.argv[1:]])
