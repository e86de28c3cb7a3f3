"""Files that are none, or somebody else's: refused with words, before they are read."""
from __future__ import annotations

import os

import pytest

#: An ill-typed graph, and what is said of it.
ILL_TYPED = [
    ("(%x: f32[4]) {\n  %y: f32[4] = relu()", "node 0 (relu) of %y: it has 0 operands; its op takes 1"),
    ("(%x: f32[4], %z: f32[3]) {\n  %y: f32[4] = add(%x, %z)", "node 0 (add) of %y: shapes [4] and [3] do not broadcast"),
    ("(%x: f32[4]) {\n  %y: f64[4] = add(%x, %x)", "its result %y is declared f64[4]; it is f32[4]"),
    ("(%x: f32[2]) {\n  %y: f32[4000] = relu(%x)", "its result %y is declared f32[4000]; it is f32[2]"),
    ("(%x: f32[2, 3], %z: f32[500000, 4]) {\n  %y: f32[2, 4] = mm(%x, %z)", "the inner dimensions of the product differ: 3 and 500000"),
    ("(%x: f32[1000000]) {\n  %y: f32[2] = cat(%x, %x) {dim = 0}", "declared f32[2]; it is f32[2000000]"),
    ("(%x: f32[3]) {\n  %z: f32[64] = expand(1.0) {dtype = f32, size = [64]}\n  %y: f32[] = sum(%x) {true = [0]}", "its op has no attribute 'dtype'"),
    ("(%x: f32[3]) {\n  %y: f32[3] = opaque(%x) {handle = 0, target = \"f\"}", "only the process that recorded the call has"),
]


@pytest.mark.parametrize("body, words", ILL_TYPED)
@pytest.mark.parametrize("arguments", [("verify",), ("run", "--backend", "reference"), ("run", "--backend", "llvm"), ("passes", "run", "simplify")])
def test_ill_typed_graphs_are_refused(tenon_command, body, words, arguments):
    (tenon_command.folder / "g.tir").write_text(f"graph @main {body}\n  return %y\n}}\n")
    done = tenon_command(*arguments, "g.tir")
    assert done.status == 1 and words in done.err, (done.status, done.out, done.err)


@pytest.mark.parametrize("suffix", [".tir", ".tnx", ".py:f"])
@pytest.mark.parametrize("kind, words", [("fifo", "it is a FIFO"), ("folder", "it is a directory"), ("device", "it is a device"), ("link", "it is a FIFO")])
def test_what_is_no_file_is_not_waited_for(tenon_command, suffix, kind, words):
    path = tenon_command.folder / ("g" + suffix.partition(":")[0])
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(tenon_command.folder / "pipe")
        path.symlink_to(tenon_command.folder / "pipe")
    for command in ("run", "verify") if suffix != ".py:f" else ("run",):
        done = tenon_command(command, "g" + suffix)
        assert done.status in (1, 2) and words in done.err, (done.status, done.err)


def test_a_link_to_nothing_is_not_its_own_neighbour(tenon_command):
    (tenon_command.folder / "g.tir").symlink_to(tenon_command.folder / "nowhere")
    done = tenon_command("run", "g.tir")
    assert done.status == 2 and "No such file" in done.err and "did you mean" not in done.err, done.err


def test_files_without_end_are_not_read(tenon_command):
    for name, size, words in [("g.tir", 1 << 40, "a graph to read may have"), ("g.tnx", 1 << 40, "does not begin like one"), ("x.npy", 1 << 43, "more than the memory")]:
        with open(tenon_command.folder / name, "wb") as file:
            file.truncate(size)
        (tenon_command.folder / "ok.tir").write_text("graph @main (%x: f32[3]) {\n  %y: f32[3] = neg(%x)\n  return %y\n}\n")
        done = tenon_command("run", "ok.tir", "--input", "x=x.npy") if name == "x.npy" else tenon_command("run", name)
        assert done.status in (1, 2) and words in done.err, (done.status, done.err)
        os.remove(tenon_command.folder / name)


@pytest.mark.parametrize("kind", ["fifo", "folder", "sparse", "empty"])
def test_damaged_entries_of_the_cache_are_missing_ones(tenon_command, tmp_path, kind):
    (tenon_command.folder / "g.tir").write_text("graph @main (%x: f32[300]) {\n  %y: f32[300] = exp(%x)\n  return %y\n}\n")
    assert tenon_command("run", "g.tir").status == 0
    folder = tmp_path / "cache" / "tenon"
    for entry in [e for e in folder.rglob("*.bin") if e.is_file()]:
        entry.unlink()
        if kind == "fifo":
            os.mkfifo(entry)
        elif kind == "folder":
            entry.mkdir()
        else:
            with open(entry, "wb") as file:
                file.truncate(1 << 42 if kind == "sparse" else 0)
    done = tenon_command("run", "g.tir")
    assert done.status == 0, done.err
