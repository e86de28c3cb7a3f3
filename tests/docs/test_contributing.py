"""The commands of docs/contributing.md work as they stand there, against the build under test and a copy of the golden files."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

PROGRAM = """
import numpy, tenon
def function(): return numpy.sin(numpy.ones(3)) + 1
tenon.compile(function)()
"""


def commands():
    """The commands that test something smaller than a stage of scripts/test."""
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/contributing.md").read_text(), re.S):
        for line in block.splitlines():
            if not line.startswith(("./scripts/", "git ")) and "pytest" not in line and "fuzz_python" not in line:
                yield line


@pytest.mark.parametrize("command", list(commands()), ids=lambda c: " ".join(c.split()[:3]))
def test_commands_work(command, build, tmp_path):
    if "fuzz_tensors" in command:
        pytest.importorskip("torch")
    (tmp_path / "program.py").write_text(PROGRAM)
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "build").mkdir()
    (tmp_path / "build/dev").symlink_to(build)
    command = command.replace(".venv/bin/python", sys.executable)
    environment = {"PYTHONPATH": str(build / "python"), **os.environ}
    done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"No tests? (cases )?matched|^0 (golden files|programs)", done.stdout, re.M), done.stdout
