"""One call of each NumPy function of the array API standard and dtype through tenon.compile. The whole walk is `python -m tests.array_api`."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tenon

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT))
from tests.array_api.judge import disagreement  # noqa: E402
from tests.walks import table  # noqa: E402

SEED = 20261122


@pytest.mark.timeout(600)
def test_no_call_is_wrong(tmp_path):
    results = tmp_path / "results.jsonl"
    paths = [str(Path(tenon.__file__).parents[1]), str(ROOT)]
    command = [sys.executable, "-m", "tests.array_api", "--results", str(results), "--jobs", "2", "--seed", str(SEED), "--dtypes", "float64,int32,uint8,bool"]
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True)
    rows = table.read(results)
    wrong = {key: row.why for key, row in rows.items() if row.wrong}
    assert run.returncode == 0 and not wrong, f"seed {SEED}: {wrong}\n{run.stderr[-2000:]}"
    verdicts = list(table.verdicts(rows).values())
    assert len(verdicts) > 200 and verdicts.count("native") >= 120, {kind: verdicts.count(kind) for kind in set(verdicts)}


def test_the_judge_sees_what_is_wrong():
    x = np.array([1.0, -0.0, np.nan])
    assert disagreement(x.copy(), x) is None
    assert "instead of" in disagreement(abs(x), x)  # the sign of zero
    assert "float32" in disagreement(x.astype("float32"), x)
    assert "error" in disagreement(x + 1e-9, x, x.astype(np.longdouble))
    assert "type" in disagreement(np.float64(1), np.array(1.0)) and "type" in disagreement((x,), [x])
    assert "instead of" in disagreement(np.array([1, 2]), np.array([1, 3]))
