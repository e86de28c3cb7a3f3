"""The conformance kit."""
import json
import pathlib
import subprocess

import pytest


@pytest.fixture(scope="session")
def kit(build):
    """Runs the kit; gives exit status and JSON report."""

    def run(library: pathlib.Path, *options: str) -> tuple[int, dict]:
        done = subprocess.run([str(build / "bin/tenon-conformance"), str(library), "--json", *options], capture_output=True, text=True, timeout=900)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run
