"""``tenon cache stats`` and ``tenon cache clear``."""
from __future__ import annotations

GRAPH = """graph @main (%x: f32[3]) {
  %y: f32[3] = exp(%x)
  return %y
}
"""


def fill(tenon_command, **variables):
    (tenon_command.folder / "graph.tir").write_text(GRAPH)
    assert tenon_command("run", "graph.tir", **variables).status == 0


def test_stats_and_clear(tenon_command):
    assert tenon_command("cache", "stats", "--json").json["entries"] == 0
    fill(tenon_command)
    found = tenon_command("cache", "stats", "--json").json
    assert found["usable"] and 0 < found["entries"] and 0 < found["bytes"] <= found["limit"]
    assert f"{found['entries']} entries" in tenon_command("cache", "stats").out
    assert tenon_command("cache", "clear", "--json").json == {"removed": found["entries"]}
    assert tenon_command("cache", "stats", "--json").json["entries"] == 0
    assert tenon_command("cache", "clear").out == "0 entries removed\n"


def test_switched_off(tenon_command):
    fill(tenon_command, TENON_CACHE="0")
    found = tenon_command("cache", "stats", TENON_CACHE="0")
    assert found.status == 0 and "not kept" in found.out
    assert tenon_command("cache", "stats", "--json").json["entries"] == 0


def test_a_folder_that_others_may_write_is_named(tenon_command, tmp_path):
    folder = tmp_path / "open"
    (folder / "store").mkdir(parents=True)
    (folder / "store").chmod(0o777)
    found = tenon_command("--set", f"cache.directory={folder}", "cache", "stats")
    assert found.status == 0 and "writable by everybody" in found.out


def test_what_cannot_be_removed_is_not_counted(tenon_command, tmp_path):
    fill(tenon_command)
    entries = tenon_command("cache", "stats", "--json").json["entries"]
    (tmp_path / "cache/tenon/store/stays.bin").mkdir()  # a folder cannot be unlinked, whoever asks
    found = tenon_command("cache", "clear")
    assert found.status == 1 and f"1 of {entries + 1} entries could not be removed from {tmp_path}/cache/tenon/store" in found.err
    assert tenon_command("cache", "stats", "--json").json["entries"] == 1


def test_nothing_is_cleared_where_nothing_is_kept(tenon_command):
    found = tenon_command("cache", "clear", TENON_CACHE="0")
    assert found.status == 1 and "compiled code is not kept" in found.err and "removed" not in found.out
