"""Programs of Python on tensors of the mock device: torch's `privateuseone`, on memory that the host cannot touch."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def on_device(build, tmp_path):
    """The environment of a process with the device."""
    if not (build / "tests/torch/mock_torch.so").exists():
        pytest.skip("torch's headers were not there when the tests were built")
    config = tmp_path / "tenon.toml"
    config.write_text(f'[compile]\nbackends = ["mock_device", "llvm"]\n[plugins]\npaths = ["{build}/tests/plugins"]\n[mock_device]\nlateness_us = 50\n')
    return {**os.environ, "TENON_CONFIG": str(config), "PYTHONPATH": f"{build}/python", "TENON_TEST_DEVICE": "mock:0"}


def run_suites(environment, *suites):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suites]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=900)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return int(re.search(r"(\d+) passed", done.stdout)[1])


def test_programs_run_on_the_device(on_device):
    assert run_suites(on_device, "tests/python/devices") > 0


def test_suites_of_ordinary_programs_run_with_their_arguments_there(on_device):
    """Where torch itself, which computes copies on the CPU here, gives another device than a card would: `3 // x`."""
    suites = [f"tests/python/tensors/test_{name}.py" for name in ("torch_tensors", "writes", "situations_of_writes", "lists_of_tensors", "grad_mode")]
    assert run_suites(on_device, "--deselect=tests/python/tensors/test_torch_tensors.py::test_reflected_operators", *suites) > 250
