"""A user's program over a backend with every fault in every phase, and over every kind of damaged file: it gets the right numbers, or a
word that names plugin and phase, and goes on. `pytest -k` takes a part: "compile-hang", "isolated"."""
from __future__ import annotations

import collections
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from expectations import FALLS, IMPOSSIBLE, REASONS, REFUSED, RIGHT, expected, matrix

HANG_SECONDS = 1.5  # limit of cases that hang; the others have time on a busy machine
PATIENT_SECONDS = 60


def run_cases(build: pathlib.Path, folder: pathlib.Path, cases: list[dict]) -> dict[str, dict | None]:
    """What came of each case, by name; None for one that took the process along."""
    outcomes: dict[str, dict | None] = {}
    results = folder / "results"
    while cases:
        (folder / "cases").write_text("".join(json.dumps(case) + "\n" for case in cases))
        results.write_text("")
        with open(folder / "stderr", "a") as words:
            subprocess.run([build / "bin/run_faults", folder / "cases", results], stdout=words, stderr=words, timeout=280)
        done = [json.loads(line) for line in results.read_text().splitlines()]
        outcomes |= {outcome["name"]: outcome for outcome in done}
        if len(done) < len(cases):
            outcomes[cases[len(done)]["name"]] = None
        cases = cases[len(done) + 1 :]
    return outcomes


def in_two(build, tmp_path_factory, cases: list[dict]) -> dict[str, dict | None]:
    """Deals the cases out to two processes."""
    folders = [tmp_path_factory.mktemp("cases"), tmp_path_factory.mktemp("cases")]
    with ThreadPoolExecutor(2) as pool:
        halves = pool.map(lambda i: run_cases(build, folders[i], cases[i::2]), range(2))
    return {name: outcome for half in halves for name, outcome in half.items()}


@pytest.fixture(scope="session")
def plugins(build, tmp_path_factory) -> pathlib.Path:
    """A folder with the plugin under its own name and under one for each fault that comes before it has options."""
    folder = tmp_path_factory.mktemp("plugins")
    folder.chmod(0o755)
    for phase, fault, _ in matrix():
        name = plugin_of(phase, fault)
        if not (folder / f"{name}.so").exists():
            shutil.copy(build / "broken/faults.so", folder / f"{name}.so")
            (folder / f"{name}.so").chmod(0o755)
            (folder / f"{name}.json").write_text(json.dumps({"manifest": 1, "name": name, "kind": "backend"}))
    return folder


def plugin_of(phase: str, fault: str) -> str:
    return f"at_{phase}_{fault}" if phase in ("load", "entry") else "faults"


def name_of(case: tuple[str, str, str]) -> str:
    return "-".join(case)


def case_of(case: tuple[str, str, str], folder: pathlib.Path) -> dict:
    phase, fault, way = case
    name = plugin_of(phase, fault)
    seconds = HANG_SECONDS if fault == "hang" else PATIENT_SECONDS
    when = "always" if way == "process" else "marked"
    overrides = [f"plugins.paths={folder}", f"compile.backends={name}", "compile.fallback=reference", "passes.pipeline=", "cache.enabled=false",
                 f"plugins.probe_seconds={seconds}", f"plugins.isolate_seconds={seconds}"]
    overrides += {"isolated": ["plugins.isolate=true"], "checked": ["plugins.check=true"]}.get(way, [])
    if name == "faults":
        overrides += [f"faults.phase={phase}", f"faults.fault={fault}", f"faults.when={when}"]
    return {"name": name_of(case), "plugin": name, "overrides": overrides}


CONTAINED = [case for case in matrix() if expected(*case) != IMPOSSIBLE]


@pytest.fixture(scope="session")
def outcomes(request, build, plugins, tmp_path_factory) -> dict[str, dict | None]:
    """Of the cases that are asked for, run together."""
    wanted = {item.callspec.params["case"] for item in request.session.items if "case" in getattr(getattr(item, "callspec", None), "params", {})}
    return in_two(build, tmp_path_factory, [case_of(case, plugins) for case in CONTAINED if case in wanted])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CONTAINED, ids=name_of)
def test_fault(case, outcomes):
    outcome = outcomes[name_of(case)]
    assert outcome is not None, "it took the process along"
    assert "error" not in outcome, outcome["error"]
    assert outcome["first"] and outcome["second"] and outcome["afterwards"] is True, outcome
    assert outcome["arithmetic"], "the arithmetic of later calls is changed"
    plugin = outcome["plugin"]
    told = [event for event in outcome["events"] if event.get("backend") == plugin["name"] and event.get("phase") and "text" in event]
    kind = expected(*case)
    if kind == REFUSED:
        assert plugin["state"] == "refused" and plugin["reason"] == REASONS.get(case[1], plugin["reason"]) and plugin["text"], plugin
        assert any(plugin["name"] in event["text"] for event in told), outcome["events"]
    elif kind == FALLS:
        assert any("fail" in event["kind"] or "invalid" in event["kind"] for event in told), outcome["events"]
        assert all(plugin["name"] in event["text"] for event in told)
    else:
        assert plugin["state"] == "loaded", plugin
        assert not any("fail" in event["kind"] for event in told), told
    if case[1] == "hang":
        waited = [event for event in outcome["events"] if event["kind"] == "plugin_probed" and not event["usable"] or "it did not come back" in event.get("text", "")]
        assert len(waited) == (kind != RIGHT), waited  # once a session, not once a call


@pytest.mark.parametrize("case", [case for case in matrix() if case[1] == "exit" and expected(*case) == IMPOSSIBLE], ids=name_of)
def test_exit_is_named(case, build, plugins, tmp_path):
    """What cannot be contained is said, and the process does not end as if all were well."""
    (tmp_path / "cases").write_text(json.dumps(case_of(case, plugins)) + "\n")
    done = subprocess.run([build / "bin/run_faults", tmp_path / "cases", tmp_path / "results"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 70 and (tmp_path / "results").read_text() == ""
    function = {"workspace": "workspace_bytes", "give_output": "the deleter of a tensor"}.get(case[0], case[0])
    assert f"plugin 'faults' ended the process in \"{function}\": it called exit(0)" in done.stderr


def test_the_matrix_is_whole():
    counts = collections.Counter(expected(*case) for case in matrix())
    assert len(matrix()) >= 300 and all(counts[kind] for kind in (REFUSED, FALLS, RIGHT, IMPOSSIBLE)), counts


def test_what_is_impossible_is_said():
    """docs/plugins.md has one row for each way and phase in which something cannot be contained, with the faults."""
    rows = (pathlib.Path(__file__).parents[3] / "docs/plugins.md").read_text().split("<!-- not contained -->")[1].split("\n\n")[1].splitlines()[2:]
    said = {tuple(cell.strip().strip("`") for cell in row.strip("|").split("|")[:2]) for row in rows}
    assert said == {(case[2], case[0]) for case in matrix() if expected(*case) == IMPOSSIBLE}


# ---- files


def empty(path: pathlib.Path):
    path.write_bytes(b"")


def truncated(path: pathlib.Path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def other_words(path: pathlib.Path):
    path.write_text('{"manifest": "one", "usable": "yes", "kind": [], "name": 3}')


def flipped(path: pathlib.Path):
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x10
    path.write_bytes(bytes(content))


def fifo(path: pathlib.Path):
    path.unlink()
    os.mkfifo(path)


def directory(path: pathlib.Path):
    path.unlink()
    path.mkdir()


def sparse(path: pathlib.Path):
    os.truncate(path, 1 << 40)


def sparse_zeros(path: pathlib.Path):
    path.write_bytes(b"")
    os.truncate(path, 1 << 40)


def unreadable(path: pathlib.Path):
    path.chmod(0)


def link_out(path: pathlib.Path):
    target = path.parent.parent / "elsewhere"
    shutil.move(path, target)
    path.symlink_to(target)


def link_to_device(path: pathlib.Path):
    path.unlink()
    path.symlink_to("/dev/zero")


def link_to_itself(path: pathlib.Path):
    path.unlink()
    path.symlink_to(path.name)


def absent(path: pathlib.Path):
    path.unlink()


DAMAGES = (absent, empty, truncated, other_words, flipped, fifo, directory, sparse, sparse_zeros, unreadable, link_out, link_to_device, link_to_itself)
FILES = ("library", "manifest", "verdict", "hash", "code")


def files_of(kind: str, folder: pathlib.Path) -> list[pathlib.Path]:
    pattern = {"library": "plugins/faults.so", "manifest": "plugins/faults.json", "verdict": "cache/probe/*.json", "hash": "cache/probe/*.hash", "code": "cache/store/*.bin"}
    return sorted(folder.glob(pattern[kind]))


def file_case(kind: str, damage, folder: pathlib.Path) -> dict:
    backend = "llvm" if kind == "code" else "faults"
    overrides = [f"plugins.paths={folder / 'plugins'}", f"compile.backends={backend}", "compile.fallback=reference", f"cache.directory={folder / 'cache'}",
                 "faults.phase=none", f"plugins.probe_seconds={PATIENT_SECONDS}"]
    return {"name": f"{kind}-{damage.__name__}", "plugin": backend, "overrides": overrides}


def run_alone(build, tmp_path_factory, cases: list[tuple]) -> dict[str, dict | None]:
    """Each in a process of its own, where code is kept: a process compiles equal kernels once."""
    together = in_two(build, tmp_path_factory, [file_case(*case) for case in cases if case[0] != "code"])
    for case in cases:
        if case[0] == "code":
            together |= run_cases(build, tmp_path_factory.mktemp("cases"), [file_case(*case)])
    return together


@pytest.fixture(scope="session")
def damaged(build, tmp_path_factory) -> dict[str, dict | None]:
    """What came of a program that ran once, and again after one of its files was damaged; and of the same with the plugin's cache beside it."""
    cases = []
    for kind in FILES:
        for damage in DAMAGES:
            folder = tmp_path_factory.mktemp(f"{kind}_{damage.__name__}")
            (folder / "plugins").mkdir(mode=0o755)
            shutil.copy(build / "broken/faults.so", folder / "plugins")
            (folder / "plugins/faults.so").chmod(0o755)
            library = (folder / "plugins/faults.so").read_bytes()
            size, content = len(library), hashlib.sha256(library).hexdigest()
            (folder / "plugins/faults.json").write_text(json.dumps({"manifest": 1, "name": "faults", "kind": "backend", "size": size, "sha256": content}))
            cases.append((kind, damage, folder))
    first = run_alone(build, tmp_path_factory, cases)
    assert all(outcome and outcome.get("first") and outcome["plugin"]["state"] == "loaded" for outcome in first.values())
    for kind, damage, folder in cases:
        found = files_of(kind, folder)
        assert found, (kind, damage)
        for path in found:
            damage(path)
    return run_alone(build, tmp_path_factory, cases)


# A damaged file of the plugin refuses it, with one of these reasons; anything else that is damaged is made anew.
FILE_REASONS = {
    "library": {absent: "missing_library", empty: "size_mismatch", truncated: "size_mismatch", other_words: "size_mismatch", flipped: "hash_mismatch", fifo: "unsafe_file",
                directory: "unsafe_file", sparse: "size_mismatch", sparse_zeros: "size_mismatch", link_out: "path_escapes", link_to_device: "path_escapes",
                link_to_itself: "path_escapes"},
    "manifest": {empty: "manifest_malformed", truncated: "manifest_malformed", other_words: "manifest_invalid", flipped: "", fifo: "unsafe_file", directory: "unsafe_file",
                 sparse: "manifest_too_large", sparse_zeros: "manifest_too_large", link_out: "path_escapes", link_to_device: "path_escapes", link_to_itself: "path_escapes"},
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", FILES)
def test_file(kind, damage, damaged):
    outcome = damaged[f"{kind}-{damage.__name__}"]
    assert outcome is not None, "it took the process along"
    assert outcome.get("first") and outcome.get("second") and outcome["afterwards"] is True, outcome
    reason = FILE_REASONS.get(kind, {}).get(damage)
    if reason:
        assert outcome["plugin"]["reason"] == reason, outcome["plugin"]
    elif reason is None:
        assert outcome["plugin"]["state"] == "loaded" or (damage is unreadable and os.geteuid() != 0), outcome["plugin"]
