"""What the samples need around them: the built package, the command, and an installed SDK."""
import os
import pathlib
import sys

import pytest


@pytest.fixture(scope="session")
def sample_environment(build, installation, compiler_environment) -> dict[str, str]:
    """Environment variables of a user who has installed Tenon; SDK is the installation prefix."""
    path = os.pathsep.join([str(installation / "bin"), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    return {**compiler_environment, "PATH": path, "PYTHONPATH": str(build / "python"), "SDK": str(installation), "CMAKE_PREFIX_PATH": str(installation)}
