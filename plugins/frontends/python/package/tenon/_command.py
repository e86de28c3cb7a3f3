"""The console script ``tenon``: starts the program of that name that lies inside the package."""
from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    """Replaces this process by the command."""
    program = pathlib.Path(__file__).parent / "bin" / "tenon"
    os.execv(program, [str(program), *sys.argv[1:]])
