"""The build under test and the conformance kit."""
import json
import os
import pathlib
import subprocess

import pytest


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    return pathlib.Path(os.environ.get("TENON_BUILD", pathlib.Path(__file__).parents[2] / "build/release"))


@pytest.fixture(scope="session")
def kit(build):
    """Runs the kit; gives exit status and JSON report."""

    def run(library: pathlib.Path, *options: str) -> tuple[int, dict]:
        done = subprocess.run([str(build / "bin/tenon-conformance"), str(library), "--json", *options], capture_output=True, text=True, timeout=300)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run
