"""Programs with types run, and type checkers find nothing wrong in them."""
import json
import os
import pathlib
import runpy
import subprocess
import sys

import pytest

import tenon

HERE = pathlib.Path(__file__).parent
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
PACKAGE = str(pathlib.Path(tenon.__file__).parents[1])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_programs_run(program):
    if "import torch" in program.read_text():
        pytest.importorskip("torch")
    runpy.run_path(str(program))


def test_mypy_has_nothing_to_say(tmp_path):
    pytest.importorskip("mypy")
    pytest.importorskip("torch")
    checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path), *map(str, PROGRAMS)],
                             env={**os.environ, "MYPYPATH": PACKAGE}, cwd=HERE, capture_output=True, text=True)
    assert "source file" in checked.stdout, checked.stdout + checked.stderr
    assert [line for line in checked.stdout.splitlines() if line.startswith("programs") or f"{HERE}/programs" in line] == []


def test_mypy_finds_no_error_in_what_the_programs_import(tmp_path):
    pytest.importorskip("mypy")
    pytest.importorskip("torch")
    checked = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), *map(str, PROGRAMS)], env={**os.environ, "MYPYPATH": PACKAGE}, cwd=HERE, capture_output=True, text=True)
    assert checked.stdout == f"Success: no issues found in {len(PROGRAMS)} source files\n", checked.stdout + checked.stderr


def test_basedpyright_has_nothing_to_say(tmp_path):
    pytest.importorskip("basedpyright")
    pytest.importorskip("torch")
    settings = {"include": [str(HERE / "programs")], "extraPaths": [PACKAGE], "typeCheckingMode": "strict", "reportMissingTypeStubs": False, "reportUnnecessaryTypeIgnoreComment": "none"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    checked = subprocess.run([sys.executable, "-m", "basedpyright", "-p", str(tmp_path), "--pythonpath", sys.executable, "--outputjson"], capture_output=True, text=True)
    report = json.loads(checked.stdout)
    assert report["summary"]["filesAnalyzed"] == len(PROGRAMS)
    assert [f"{found['file']}:{found['range']['start']['line'] + 1}: {found['message']}" for found in report["generalDiagnostics"]] == []
