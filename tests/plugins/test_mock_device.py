"""Ordinary programs on a device whose memory the host cannot touch: a pass moves their arithmetic there."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import numpy as np
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


GRAPH = """graph @main [s0: 1..1024] (%x: f32[s0, 4], %w: f32[4]) {
  %y: f32[s0, 4] = mul(%x, %w)
  %z: f32[s0] = sum(%y) {dim = [1], keepdim = false}
  %o: f32[s0, 4] = full(1.0) {dtype = f32, size = [s0, 4]}
  %v: f32[s0, 4] = add(%y, %o)
  return %z, update %x = %v
}
"""


@pytest.fixture
def beside_the_host(build, tmp_path):
    """The environment of a process that knows the mock device, and puts nothing there by itself."""
    config = tmp_path / "tenon.toml"
    config.write_text(f'[compile]\nbackends = ["mock_device", "llvm"]\n[plugins]\npaths = ["{build}/tests/plugins"]\n[mock_device]\nlateness_us = 20\n')
    return {**os.environ, "TENON_CONFIG": str(config), "PYTHONPATH": f"{build}/python"}


def test_the_command_runs_graphs_on_the_device(beside_the_host, build, tmp_path):
    (tmp_path / "g.tir").write_text(GRAPH)

    def run(*words):
        done = subprocess.run([f"{build}/bin/tenon", "run", "g.tir", "--size", "s0=5", *words, "--json"], capture_output=True, text=True, env=beside_the_host, cwd=tmp_path, timeout=120)
        return done.returncode, done.stdout, done.stderr

    status, here, said = run("--backend", "reference")
    assert status == 0, said
    here = json.loads(here)
    for name in ("mock:1", "device12:1", "mock"):
        status, there, said = run("--device", name)
        assert status == 0, said
        there = json.loads(there)
        assert there["outputs"] == here["outputs"]
        assert {step["backend"] for step in there["plan"]["steps"] if step.get("nodes")} == {"mock_device"}
    for name in ("nowhere:0", "mock:7", "mock:x", "device12:7", ":1"):
        status, _, said = run("--device", name)
        assert status == 2 and f"--device: no backend that is loaded brings the memory of {name}; there is: cpu, mock:0, mock:1" in said


def test_the_command_copies_constants_of_exported_programs_to_the_device(beside_the_host, build, tmp_path):
    program = """
import numpy as np, torch, tenon
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())
x = torch.randn(5, 4)
tenon.export(net, (x,)).save("net.tnx")
np.save("x.npy", x.numpy())
np.save("want.npy", net(x).detach().numpy())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=beside_the_host, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    words = ["run", "net.tnx", "--device", "device12:0", "--input", "input=x.npy", "--output", "y=y.npy"]
    done = subprocess.run([f"{build}/bin/tenon", *words], capture_output=True, text=True, env=beside_the_host, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.load(tmp_path / "want.npy"), rtol=1e-5, atol=1e-6)
