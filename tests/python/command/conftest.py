"""How the tests of the command find and start it."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def _command() -> str | None:
    """The command of the build whose package is under test, else the installed one."""
    candidates = [Path(entry).parent / "bin" / "tenon" for entry in sys.path if entry]
    found = next((str(path) for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)
    return found or shutil.which("tenon")


class Result:
    """What one run of the command gave."""

    def __init__(self, done: subprocess.CompletedProcess):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def tenon_command(tmp_path, monkeypatch):
    """Runs the command in an empty folder, without the user's configuration and cache: run("plugins", "list", TENON_X="...")."""
    program = _command()
    if not program:
        pytest.skip("the command is not built")
    folder = tmp_path / "work"
    folder.mkdir()

    def run(*arguments: object, **variables: str) -> Result:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TENON_")}
        # Programs of Python files: this interpreter, and this package wherever the command runs.
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
        environment.update(HOME=str(tmp_path / "home"), XDG_CACHE_HOME=str(tmp_path / "cache"), XDG_CONFIG_HOME=str(tmp_path / "config"), **variables)
        words = [program, *map(str, arguments)]
        return Result(subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120))

    run.folder, run.program = folder, program
    return run
