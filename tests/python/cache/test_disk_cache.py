"""Machine code on disk: a second process finds what the first compiled, and nothing that lies there can do harm."""
from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json
import numpy as np
import tenon

def fn(x):
    y = np.tanh(x) * 2
    return y, y.sum(axis=1)

x = np.linspace(-3, 3, 600, dtype=np.float32).reshape(20, 30)
for got, want in zip(tenon.compile(fn, options={"llvm": {"swap_tiers": False}})(x), fn(x)):
    np.testing.assert_allclose(got, want, rtol=1e-5)
stats = tenon.stats()
assert stats["eager_fallbacks"] == 0 and stats["graphs"] == 1
print(json.dumps(stats["host"]["cache"]))
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def start(folder, **variables) -> subprocess.Popen:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TENON_")}
    environment.update(PYTHONPATH=os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry), TENON_CACHE_DIR=str(folder), **variables)
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def counts(process: subprocess.Popen) -> dict[str, int]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


def run(folder, **variables) -> dict[str, int]:
    return counts(start(folder, **variables))


def entries(folder):
    return sorted((folder / "store").glob("*.bin"))


def test_a_second_process_finds_all(folder):
    first = run(folder)
    assert first["hits"] == 0 and first["stored"] == len(entries(folder)) > 0
    second = run(folder)
    assert second == {"hits": first["stored"], "misses": 0, "stored": 0, "damaged": 0}


@pytest.mark.parametrize("damage", [lambda b: b[:-10], lambda b: b"", lambda b: b[:200] + b"\0" * 8 + b[208:]], ids=["truncated", "empty", "overwritten"])
def test_damaged_entries_are_compiled_anew(folder, damage):
    first = run(folder)
    for path in entries(folder):
        path.write_bytes(damage(path.read_bytes()))
    second = run(folder)
    assert second["hits"] == 0 and second["damaged"] > 0 and second["stored"] == first["stored"]
    assert run(folder)["misses"] == 0


def test_a_damaged_entry_is_told_in_the_log(folder):
    run(folder)
    for path in entries(folder):
        path.write_bytes(b"TENONST1")
    _, err = start(folder, TENON_LOGS="cache").communicate(timeout=120)
    assert "cache_damaged" in err and str(folder) in err


def test_entries_of_another_format_are_left_alone_until_they_are_replaced(folder):
    first = run(folder)
    for path in entries(folder):
        path.write_bytes(b"TENONST9" + path.read_bytes()[8:])
    second = run(folder)
    assert (second["hits"], second["damaged"], second["stored"]) == (0, 0, first["stored"])


def test_two_processes_at_once(folder):
    both = [start(folder) for _ in range(2)]
    assert all(counts(process)["damaged"] == 0 for process in both)
    assert run(folder)["misses"] == 0


def test_the_bound_is_kept(folder):
    assert run(folder, TENON_CACHE_BYTES="3000")["stored"] > 0
    assert sum(path.stat().st_size for path in entries(folder)) <= 3000


def test_switched_off(folder):
    assert run(folder, TENON_CACHE="0") == {"hits": 0, "misses": 0, "stored": 0, "damaged": 0}
    assert not folder.exists()


def test_a_folder_that_others_may_write_is_refused(folder):
    run(folder)
    (folder / "store").chmod(0o777)
    process = start(folder)
    out, err = process.communicate(timeout=120)
    assert json.loads(out)["hits"] == 0
    assert "compiled code is not kept on disk" in err and "writable by everybody" in err


def test_options_of_code_generation_are_part_of_the_key(folder, tmp_path):
    run(folder)
    (tmp_path / "tenon.toml").write_text("[llvm]\nvector_width = 16\n")
    assert run(folder, TENON_CONFIG=str(tmp_path / "tenon.toml"))["hits"] == 0
