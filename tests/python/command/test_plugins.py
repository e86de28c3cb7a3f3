"""Plugins as the command sees them."""
from __future__ import annotations

import json
import shutil

import pytest


@pytest.fixture
def folder(tenon_command):
    """A plugin directory with a text file as a library and a manifest that is none."""
    path = tenon_command.folder / "plugins"
    path.mkdir(mode=0o755)
    (path / "words.json").write_text(json.dumps({"manifest": 1, "name": "words", "kind": "backend"}))
    (path / "words.so").write_text("not a library")
    (path / "torn.json").write_text("{")
    for file in path.iterdir():
        file.chmod(0o644)
    return path


def test_list_shows_what_there_is(tenon_command, folder):
    plugins = {p["name"]: p for p in tenon_command("plugins", "list", "--json", TENON_PLUGIN_PATH=str(folder)).json["plugins"]}
    assert plugins["reference"]["state"] == "found" and plugins["reference"]["source"] == "built-in"
    assert plugins["words"]["state"] == "found" and plugins["words"]["source"] == "TENON_PLUGIN_PATH"
    assert plugins["torn"]["reason"] == "manifest_malformed"
    text = tenon_command("plugins", "list", TENON_PLUGIN_PATH=str(folder)).out
    assert "reference" in text and "manifest_malformed" in text


def test_why(tenon_command, folder):
    result = tenon_command("plugins", "why", "reference")
    assert result.status == 0 and "loaded" in result.out and "part of this installation" in result.out
    result = tenon_command("plugins", "why", "words", TENON_PLUGIN_PATH=str(folder))
    assert result.status == 1 and "not_elf" in result.out
    assert tenon_command("plugins", "why", "words", "--json", TENON_PLUGIN_PATH=str(folder)).json["plugins"][0]["reason"] == "not_elf"


def test_disable_and_refused_directories(tenon_command, folder):
    (tenon_command.folder / "tenon.toml").write_text(f"[plugins]\npaths = ['{folder}']\ndisable = ['w*']\n")
    plugins = {p["name"]: p for p in tenon_command("plugins", "list", "--json").json["plugins"]}
    assert plugins["words"]["state"] == "disabled" and "tenon.toml:3" in plugins["words"]["text"]
    folder.chmod(0o777)
    listed = tenon_command("plugins", "list", "--json").json
    assert "words" not in {p["name"] for p in listed["plugins"]}
    assert [d["reason"] for d in listed["directories"] if d["path"] == str(folder)] == ["unsafe_directory"]
    assert "unsafe_directory" in tenon_command("plugins", "list").out


def test_a_broken_plugin_leaves_the_others_working(tenon_command, folder):
    (tenon_command.folder / "g.tir").write_text("graph @main (%x: f32[3]) {\n  %y: f32[3] = add(%x, 1)\n  return %y\n}\n")
    result = tenon_command("run", "g.tir", "--backend", "words,reference", "--json", TENON_PLUGIN_PATH=str(folder))
    assert result.status == 0, result.err
    assert result.json["outputs"][0]["shape"] == [3]


def test_logs(tenon_command, folder):
    result = tenon_command("plugins", "why", "words", TENON_PLUGIN_PATH=str(folder), TENON_LOGS="plugins")
    assert "plugin_refused" in result.err and "not_elf" in result.err
    assert "plugin_refused" not in tenon_command("plugins", "why", "words", TENON_PLUGIN_PATH=str(folder)).err


def test_a_third_party_copy_is_probed_once(tenon_command):
    listed = tenon_command("plugins", "list", "--json").json["plugins"]
    source = next(p["path"] for p in listed if p["name"] == "reference")
    folder = tenon_command.folder / "own"
    folder.mkdir(mode=0o755)
    # A built-in plugin under the same name ranks higher, so the copy is looked at alone.
    shutil.copy(source, folder / "reference.so")
    (folder / "reference.so").chmod(0o755)
    arguments = ("plugins", "why", "reference", "--json")
    decisions = [p["decisions"] for p in tenon_command(*arguments, TENON_PLUGIN_PATH=str(folder)).json["plugins"]]
    assert any("duplicate_name" in decision for decision in decisions[1])
