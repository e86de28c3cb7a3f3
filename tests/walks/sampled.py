"""The command of a walk on one sample of each entry, as the test suite runs it."""
import os
import subprocess
import sys
from pathlib import Path

import tenon
from tests.walks import table

ROOT = Path(__file__).parents[2]


def run_module(module: str, *options: str) -> subprocess.CompletedProcess:
    """What `python -m module` gives, with the package under test and the tests to import."""
    paths = [str(Path(tenon.__file__).parents[1]), str(ROOT)]
    return subprocess.run([sys.executable, "-m", module, *options], cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True)


def verdicts_of(package: str, results: Path, seed: int, *options: str) -> list[str]:
    """The verdicts on all entries of `python -m package`, whose rows go to the file `results`; fails where a sample is wrong."""
    run = run_module(package, "--results", str(results), "--jobs", "2", "--seed", str(seed), *options)
    rows = table.read(results)
    wrong = {key: row.why for key, row in rows.items() if row.wrong}
    assert run.returncode == 0 and not wrong, f"seed {seed}: {wrong}\n{run.stderr[-2000:]}"
    return list(table.verdicts(rows).values())
