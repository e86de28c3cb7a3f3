"""What the samples need around them: the built package, the command, and an installed SDK."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    """The build folder under test."""
    return pathlib.Path(os.environ.get("TENON_BUILD", ROOT / "build/release"))


@pytest.fixture(scope="session")
def sample_environment(build, tmp_path_factory) -> dict[str, str]:
    """Environment variables of a user who has installed Tenon; SDK is the installation prefix."""
    prefix = tmp_path_factory.mktemp("sdk")
    subprocess.run(["cmake", "--install", str(build), "--prefix", str(prefix)], check=True, capture_output=True)
    path = os.pathsep.join([str(prefix / "bin"), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(build / "python"), "SDK": str(prefix), "CMAKE_PREFIX_PATH": str(prefix)}
