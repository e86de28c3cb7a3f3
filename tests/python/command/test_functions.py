"""``tenon run``, ``tenon explain`` and ``tenon report`` on functions of Python files."""
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import numpy as np
import tenon

@tenon.compile
def scaled(a, n, k=2.0):
    return {"sum": np.sin(a) * k + n, "both": (a, a.sum(axis=0))}

def noisy(a):
    return a + np.random.rand(3)

def broken(a):
    if a.sum() > 0:
        return a + 1
    raise ValueError("no such luck")

def branched(a):
    if a.sum() > 0:
        return a + 1
    return a - 1

@tenon.compile(backend="reference")
def on_reference(a):
    return a * 2

not_a_function = 3
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    np.save(tmp_path / "a.npy", np.linspace(0, 1, 12).reshape(4, 3))
    np.save(tmp_path / "minus.npy", -np.ones(3))
    return tmp_path


def test_a_function_runs_on_files_and_sizes(program, tenon_command):
    a = np.load(program / "a.npy")
    done = tenon_command("run", f"{program}/program.py:scaled", "--input", f"a={program}/a.npy", "--size", "n=3", "--output", f"0={program}/out.npy", "--json")
    assert done.status == 0, done.err
    np.testing.assert_allclose(np.load(program / "out.npy"), np.sin(a) * 2 + 3)
    assert [one["shape"] for one in done.json["outputs"]] == [[4, 3], [4, 3], [3]]
    assert done.json["statistics"]["graphs"] == 1


def test_the_seed_decides_random_numbers(program, tenon_command):
    found = []
    for seed in (1, 1, 2):
        done = tenon_command("run", f"{program}/program.py:noisy", "--input", f"a={program}/a.npy", "--seed", seed, "--output", f"y={program}/out.npy", "--json")
        assert done.status == 0, done.err
        found.append(np.load(program / "out.npy"))
    assert np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2])


def test_a_function_is_explained(program, tenon_command):
    done = tenon_command("explain", f"{program}/program.py:scaled", "--input", f"a={program}/a.npy", "--size", "n=3")
    assert done.status == 0, done.err
    assert "Graph Count: 1" in done.out and "numpy.sin" in done.out
    done = tenon_command("explain", f"{program}/program.py:branched", "--input", f"a={program}/a.npy", "--json")
    assert done.json["graph_break_count"] == 1 and "if a.sum() > 0:" in done.json["break_reasons"][0]


def test_a_function_is_reported(program, tenon_command):
    given = (f"{program}/program.py:branched", "--input", f"a={program}/a.npy")
    done = tenon_command("report", *given)
    assert done.status == 0, done.err
    page = tenon_command.folder / "tenon-report.html"
    assert done.out.strip() == f"a report of 2 graphs and 1 breaks: {page}" and page.read_text().startswith("<!doctype html>")
    done = tenon_command("report", *given, "--out", f"{program}/page.html", "--runs", "1", "--json")
    assert done.json == {"path": f"{program}/page.html", "graph_count": 2, "graph_break_count": 1} and (program / "page.html").stat().st_size > 10_000


@pytest.mark.parametrize("out, why", [("none/page.html", "No such file or directory"), (".", "Is a directory"), ("/proc/page.html", "")])
def test_a_report_that_cannot_be_written_is_refused_before_the_program_runs(program, tenon_command, out, why):
    (program / "loud.py").write_text("print('imported')\n" + PROGRAM)
    done = tenon_command("report", f"{program}/loud.py:branched", "--input", f"a={program}/a.npy", "--out", out)
    assert done.status == 2 and "cannot write to" in done.err and why in done.err and "imported" not in done.out, done.err


@pytest.mark.parametrize("command", ["run", "explain", "report"])
@pytest.mark.parametrize(
    "target, words",
    [
        ("program.py", "program.py"),
        ("none.py:f", "none.py"),
        ("program.py:scald", "did you mean 'scaled'?"),
        ("progam.py:scaled", "program.py"),
        ("program.txt:f", "program.txt"),
        (":scaled", "no file stands before the colon"),
        ("program.py:", "program.py"),
        ("wrong.py:f", "wrong.py is no file of Python's: invalid syntax"),
        ("bytes.py:f", "bytes.py is no file of Python's: source code string cannot contain null bytes"),
    ],
)
def test_a_target_that_is_none_is_named(program, tenon_command, monkeypatch, command, target, words):
    (program / "program.txt").write_text("")
    (program / "wrong.py").write_text("def f(:\n")
    (program / "bytes.py").write_bytes(b"\0\1\xff")
    done = tenon_command(command, f"{program}/{target}" if target[0] != ":" else target, "--input", f"a={program}/a.npy")
    assert done.status == 2 and words in done.err and "Traceback" not in done.err, done.err


@pytest.mark.parametrize(
    "target, arguments, status, words",
    [
        ("scaled", [], 2, "no --input (or --size) for a, n"),
        ("scaled", ["--input", "b={}/a.npy"], 2, "a name among a, n, k"),
        ("scaled", ["--input", "a={}/none.npy"], 2, "none.npy"),
        ("scaled", ["--input", "a={}/a.npy", "--size", "n=many"], 2, "NAME=NUMBER"),
        ("missing", [], 2, "has no function 'missing'; it has: scaled, noisy, broken"),
        ("not_a_function", [], 2, "not_a_function of {}/program.py is no function but of type int; it has: scaled"),
        ("broken", ["--input", "a={}/minus.npy"], 1, "ValueError: no such luck"),
    ],
)
def test_usage_and_failures(program, tenon_command, target, arguments, status, words):
    done = tenon_command("run", f"{program}/program.py:{target}", *[a.format(program) for a in arguments])
    assert done.status == status and words.format(program) in done.err, (done.status, done.err)


def test_a_decorated_function_keeps_its_backend(program, tenon_command):
    target, given = f"{program}/program.py:on_reference", ("--input", f"a={program}/a.npy")
    done = tenon_command("run", target, *given, "--json")
    assert done.status == 0 and set(done.json["statistics"]["backends"]) == {"reference"}, done.err
    done = tenon_command("explain", target, *given)
    assert done.status == 0 and "Nodes: 1 on reference" in done.out, done.out
    done = tenon_command("run", target, *given, "--backend", "llvm", "--json")
    assert done.status == 0 and done.json["statistics"]["backends"]["llvm"]["nodes"] == 1


@pytest.mark.parametrize(
    "target, words",
    [
        (":f", "no file stands before the colon; a target is written FILE.py:FUNCTION, for example model.py:f"),
        ("f", "there is no file f; a target is written FILE.py:FUNCTION"),
        ("", "no file stands before the colon"),
        ("{}:f", "is a folder"),
        ("{}/progam.py:f", "did you mean 'program.py'?"),
        ("{}/program.py", "program.py names no function; it has: scaled, noisy"),
    ],
)
def test_a_target_that_is_none_is_named_without_the_command_too(program, target, words):
    done = subprocess.run([sys.executable, "-m", "tenon", "report", target.format(program)], capture_output=True, text=True)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_seed_that_no_library_takes_is_wrong_usage(program):
    done = subprocess.run([sys.executable, "-m", "tenon", "run", f"{program}/program.py:noisy", "--seed", "-1"], capture_output=True, text=True)
    assert done.returncode == 2 and "must be a whole number from 0 to 4294967295" in done.stderr


def test_programs_run_on_the_python_of_the_environment_that_holds_the_command(program, tenon_command, tmp_path):
    found = pathlib.Path(tenon_command.program).resolve()
    libraries = found.parents[1] / "lib"
    own = tmp_path / "env/lib/python3/site-packages/tenon/bin/tenon"
    own.parent.mkdir(parents=True)
    shutil.copy(found, own)
    python = tmp_path / "env/bin/python3"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "the right one: $@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [str(own), "explain", f"{program}/program.py:branched"],
        env={**os.environ, "LD_LIBRARY_PATH": str(libraries)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"the right one: -m tenon explain {program}/program.py:branched\n", done.stderr
