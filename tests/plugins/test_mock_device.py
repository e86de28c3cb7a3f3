"""Ordinary programs on a device whose memory the host cannot touch: a pass moves their arithmetic there."""
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def on_device(build, tmp_path):
    """The environment of a process whose graphs run on the mock device."""
    pipeline = tomllib.loads((ROOT / "plugins/defaults.toml").read_text())["passes"]["pipeline"]
    config = tmp_path / "tenon.toml"
    config.write_text(f'[compile]\nbackends = ["mock_device", "llvm"]\n[passes]\npipeline = {[*pipeline, "to_mock_device"]}\n'
                      f'[plugins]\npaths = ["{build}/tests/plugins"]\n[mock_device]\nlateness_us = 20\n')
    return {**os.environ, "TENON_CONFIG": str(config), "PYTHONPATH": f"{build}/python"}


def test_a_program_runs_on_the_device(on_device):
    program = """
import torch, tenon
@tenon.compile
def step(x, w):
    h = torch.tanh(x @ w)
    x += h.sum(1, keepdim=True)
    return h.softmax(-1), (h > 0).sum()
x, w = torch.randn(5, 4), torch.randn(4, 4)
y = x.clone()
for _ in range(3):
    got = step(x, w)
h = None
for _ in range(3):
    h = torch.tanh(y @ w)
    y += h.sum(1, keepdim=True)
torch.testing.assert_close(x, y)
torch.testing.assert_close(got[0], h.softmax(-1))
assert got[1] == (h > 0).sum()
stats = tenon.stats()
assert stats["graph_breaks"] == 0, stats
print(stats["backends"]["mock_device"]["runs"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=on_device, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_suites_of_ordinary_programs_run_on_the_device(on_device):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile", "tests/python/tensors", "tests/python/breaks"]
    done = subprocess.run(command, capture_output=True, text=True, env=on_device, cwd=ROOT, timeout=900)
    assert done.returncode == 0, done.stdout[-8000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 1400
