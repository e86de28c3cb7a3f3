"""Wrong usage is named, with the nearest right word, and ends with status 2."""
from __future__ import annotations

import pytest

GRAPH = """graph @main (%x: f32[3]) {
  %y: f32[3] = add(%x, 1)
  return %y
}
"""


def test_help_and_version(tenon_command):
    assert tenon_command("--help").status == 0
    assert tenon_command("--version").out.strip()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("plugin", "list"), "did you mean 'plugins'?"),
        (("plugins", "lst"), "did you mean 'list'?"),
        (("flags", "--jsn"), "did you mean '--json'?"),
        (("run", "g.tir", "--bakend", "reference"), "did you mean '--backend'?"),
        ((), "subcommand"),
        (("run",), "TARGET"),
        (("verify", "nowhere.tir"), "cannot read nowhere.tir"),
        (("plugins", "why", "refrence"), "did you mean 'reference'?"),
        (("ops", "show", "addd"), "unknown op 'addd'"),
        (("explain", "nowhere.py"), "file:function"),
        (("--set", "runtime.thread=1", "flags"), "did you mean 'threads'?"),
        (("--set", "runtime.threads=many", "flags"), "must be an integer"),
        (("--config", "nowhere.toml", "flags"), "nowhere.toml"),
        (("--logs", "pases", "flags"), "did you mean 'passes'?"),
        (("run", "g.tir", "--repeat", "0"), "--repeat: must be a whole number from 1 to 2147483647, not: 0"),
        (("run", "g.tir", "--repeat", "-1"), "--repeat: must be a whole number from 1"),
        (("run", "g.tir", "--repeat", "many"), "--repeat: must be a whole number from 1"),
        (("run", "g.tir", "--seed", "-1"), "--seed: must be a whole number from 0 to 4294967295, not: -1"),
        (("run", "g.tir", "--seed", "4294967296"), "--seed: must be a whole number from 0"),
        (("explain", "g.py:f", "--seed", "-1"), "--seed: must be a whole number from 0"),
        (("run", "g.tir", "--backend", ""), "--backend needs a value"),
        (("run", "g.tir", "--input", ""), "--input needs a value"),
        (("--logs", "", "flags"), "--logs needs a value"),
        (("--config", "", "flags"), "--config needs a value"),
        (("plugins", "test", "g.so", "--filter", ""), "--filter needs a value"),
    ],
)
def test_wrong_words(tenon_command, arguments, said):
    result = tenon_command(*arguments)
    assert result.status == 2, result.err
    assert said in result.err


@pytest.mark.parametrize(
    "text, said",
    [
        ("[compile]\nbackend = ['reference']\n", "tenon.toml:2: unknown key 'backend' in [compile]; did you mean 'backends'?"),
        ("[compile]\nbackends = ['refrence']\n", "tenon.toml:2: unknown backend 'refrence'; did you mean 'reference'?"),
        ("[compile]\nbackends = 5\n", "tenon.toml:2: compile.backends must be a list of text"),
        ("\n[passses]\nverify = true\n", "tenon.toml:2: unknown section 'passses'; did you mean 'passes'?"),
        ("[passes\n", "tenon.toml:1: "),
        pytest.param("# a key\na" + ".a" * 100000 + " = 1\n", "tenon.toml:2: a line with more than 1000 dots", id="dots"),  # pytest gives the name to processes
        ("[printer]\ncode = 'yes'\n", "tenon.toml:2: printer.code must be true or false, not: \"yes\""),
        ("[llvm]\nvector_width = 16.5\n", "tenon.toml:2: llvm.vector_width must be an integer, not: 16.5"),
    ],
)
def test_wrong_configuration(tenon_command, text, said):
    (tenon_command.folder / "tenon.toml").write_text(text)
    (tenon_command.folder / "g.tir").write_text(GRAPH)
    for arguments in (("flags",), ("run", "g.tir")):
        result = tenon_command(*arguments)
        assert result.status == 2
        assert said in result.err


def test_wrong_environment(tenon_command):
    result = tenon_command("flags", TENON_BACKENDS="refrence")
    assert result.status == 2 and "TENON_BACKENDS: unknown backend 'refrence'; did you mean 'reference'?" in result.err
    result = tenon_command("flags", TENON_THREADS="two")
    assert result.status == 2 and "TENON_THREADS: runtime.threads must be an integer" in result.err


def test_what_is_misspelt_and_does_no_harm_is_named_once(tenon_command):
    folder = tenon_command.folder
    (folder / "g.tir").write_text(GRAPH)
    (folder / "my_plugins").mkdir()
    (folder / "tenon.toml").write_text("[plugins]\npaths = ['my_plugin']\ndisable = ['lvlm']\n")
    result = tenon_command("run", "g.tir", TENON_BACKEND="reference", TENON_PLUGIN_PATH=f"{folder}/my_plugns")
    assert result.status == 0, result.err
    for said in (
        "the environment variable TENON_BACKEND is none that is read; did you mean 'TENON_BACKENDS'?",
        f"tenon.toml:2: no plugins are searched in {folder}/my_plugin: cannot be read: No such file or directory; did you mean '{folder}/my_plugins'?",
        f"TENON_PLUGIN_PATH: no plugins are searched in {folder}/my_plugns",
        "tenon.toml:3: plugins.disable names no plugin: 'lvlm'; did you mean 'llvm'?",
    ):
        assert result.err.count(said) == 1, result.err
    (folder / "tenon.toml").write_text("[plugins]\npaths = ['my_plugins']\ndisable = ['llvm']\n")
    assert "did you mean" not in tenon_command("run", "g.tir", TENON_BACKENDS="reference", TENON_PLUGIN_PATH=f"{folder}/my_plugins").err


def test_files_that_are_not_there_are_named_with_their_neighbours(tenon_command):
    (tenon_command.folder / "graph.tir").write_text(GRAPH)
    (tenon_command.folder / "x.npy").write_text("")
    for arguments in (("run", "grph.tir"), ("verify", "graph.tri")):
        result = tenon_command(*arguments)
        assert result.status == 2 and "No such file or directory; did you mean 'graph.tir'?" in result.err
    result = tenon_command("run", "graph.tir", "--input", "x=xx.npy")
    assert result.status != 0 and "did you mean 'x.npy'?" in result.err


def test_a_configuration_file_that_is_not_there_is_named_with_its_neighbour(tenon_command):
    (tenon_command.folder / "tenon.toml").write_text("")
    result = tenon_command("--config", "tennon.toml", "flags")
    assert result.status == 2 and "did you mean 'tenon.toml'?" in result.err


def test_precedence_of_configuration(tenon_command):
    def threads(*arguments, **variables):
        flags = tenon_command(*arguments, "flags", "--json", **variables).json
        return next((flag["value"], flag["origin"]) for flag in flags if flag["key"] == "runtime.threads")

    assert threads() == (0, "default")
    (tenon_command.folder / "tenon.toml").write_text("[runtime]\nthreads = 2\n")
    assert threads() == (2, "tenon.toml:2")
    (tenon_command.folder / "other.toml").write_text("[runtime]\nthreads = 3\n")
    assert threads(TENON_CONFIG="other.toml") == (3, "other.toml:2")
    assert threads("--config", "tenon.toml", TENON_CONFIG="other.toml") == (2, "tenon.toml:2")
    assert threads(TENON_THREADS="4") == (4, "TENON_THREADS")
    assert threads("--set", "runtime.threads=5", TENON_THREADS="4") == (5, "argument")


def test_flags_are_whole(tenon_command):
    flags = tenon_command("flags", "--json").json
    assert len(flags) > 15
    assert all(flag["environment"].startswith("TENON_") and flag["meaning"] and flag["key"] for flag in flags)
    text = tenon_command("flags").out
    assert all(flag["key"] in text and flag["environment"] in text for flag in flags)


def test_the_logs_are_listed_where_they_are_asked_for(tenon_command):
    for result in (tenon_command("flags", TENON_LOGS="help"), tenon_command("--logs", "help", "flags")):
        assert result.status == 0
        lines = result.err.splitlines()
        assert any(line.split(maxsplit=1) == ["graph_breaks", "where and why a capture ended early"] for line in lines), lines
        assert len(lines) == 17  # the first says how they are switched on
