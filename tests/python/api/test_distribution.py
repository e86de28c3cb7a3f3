"""What is said of interpreters before anything is built, and the name of the distribution."""
import pathlib
import subprocess
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.parametrize("version, taken", [("3.10.13", False), ("3.11.0", True), ("3.13.9", True), ("3.14.0", False), ("3.15.1", False)])
def test_other_interpreters_are_refused_by_name(version, taken):
    """CMake's check; pip's is `requires-python`."""
    command = ["cmake", f"-DPython_VERSION={version}", "-DPython_EXECUTABLE=/usr/bin/python3", "-P", ROOT / "plugins/frontends/python/python_version.cmake"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode == 0) == taken
    assert taken or f"/usr/bin/python3 is {version}" in " ".join(done.stderr.split())


def test_pip_is_told_the_same():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11,<3.14"
    assert project["name"] in (ROOT / "README.md").read_text()
