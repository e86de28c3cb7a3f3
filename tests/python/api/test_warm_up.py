"""The thread that starts the code generator while the program starts: nobody can tell that it was there."""
import os
import subprocess
import sys

import pytest


def run(text, **environment):
    return subprocess.run([sys.executable, "-c", text], env={**os.environ, **environment}, capture_output=True, text=True)


def test_a_process_may_exit_at_once():
    done = run("import tenon", TENON_LOGS="all")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_is_counted():
    done = run("import tenon, tenon._tenon as t; t.finish_warm_up(); s = tenon.stats(); print(s['graphs'], s['backends'], s['host']['cache']['stored'])")
    assert done.stdout.split("\n")[0] == "0 {} 0", done.stderr


def test_a_child_compiles():
    done = run("""
import os, tenon, numpy as np
child = os.fork()
result = tenon.compile(lambda x: x * 2 + 1)(np.arange(4.0))
assert result.tolist() == [1, 3, 5, 7]
if child:
    assert os.waitpid(child, 0)[1] == 0
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("settings", [{"TENON_WARM_UP": "0"}, {"TENON_BACKENDS": "no_such"}])
def test_what_is_switched_off_or_wrong_is_not_told(settings):
    done = run("import tenon; tenon._tenon.finish_warm_up()", **settings)
    assert (done.returncode, done.stderr) == (0, "")
