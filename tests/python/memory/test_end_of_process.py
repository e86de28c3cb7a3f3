"""A process ends as it should while kernels are still improved in the background, and while threads are in compiled functions."""
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3]))
from tests.process.exits import end  # noqa: E402

PROGRAM = """
import numpy as np, tenon
a = np.random.rand(64, 48)
for k in range(3):
    tenon.compile(lambda a: np.exp(a * k - a.max(axis=1, keepdims=True)).sum(axis=0))(a)
"""


def test_a_process_may_end_right_after_a_call(tmp_path, monkeypatch):
    monkeypatch.setenv("TENON_CACHE_DIR", str(tmp_path))  # so that there is something to improve
    for _ in range(3):
        assert subprocess.run([sys.executable, "-c", PROGRAM], timeout=120).returncode == 0



@pytest.mark.parametrize("name", ["compile", "break", "first opaque", "generators and exceptions", "reset meanwhile", "calls while it ends"])
def test_a_process_may_end_while_threads_are_at_work(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TENON_CACHE_DIR", str(tmp_path))
    status, said = end(name, 0.3)
    assert status == 0, said
