"""What tests of plugins need: the build under test, the installed SDK, and a build out of tree."""
import json
import os
import pathlib
import subprocess

import pytest
from sdk_project import FIRST_PARTY, SAMPLES, OutOfTree, write_documented_plugins, write_project


@pytest.fixture(scope="session")
def sdk(build, tmp_path_factory) -> pathlib.Path:
    """The prefix of an installation that holds the SDK alone."""
    prefix = tmp_path_factory.mktemp("sdk")
    subprocess.run(["cmake", "--install", str(build), "--prefix", str(prefix), "--component", "sdk"], check=True, capture_output=True)
    return prefix


@pytest.fixture(scope="session")
def out_of_tree(sdk, compiler_environment, tmp_path_factory) -> OutOfTree:
    """Builds against the SDK alone."""
    return OutOfTree(sdk, tmp_path_factory.mktemp("out_of_tree"), compiler_environment)


@pytest.fixture(scope="session")
def out_of_tree_with_core(installation, compiler_environment, tmp_path_factory) -> OutOfTree:
    """Builds against the whole installation, as samples/06_embed_in_cpp must: core is compiled alike and comes from the compiler cache."""
    return OutOfTree(installation, tmp_path_factory.mktemp("with_core") / "projects", compiler_environment)


@pytest.fixture(scope="session")
def with_gcc(out_of_tree_with_core, tmp_path_factory) -> pathlib.Path:
    """First-party plugins, samples and the documentation's plugins, built with gcc as one project, so that core is compiled once."""
    folder = tmp_path_factory.mktemp("gcc")
    documented = write_documented_plugins(folder / "documented")
    project = write_project(folder / "project", FIRST_PARTY | SAMPLES | {"documented": documented})
    return out_of_tree_with_core.build(project, "gcc")


@pytest.fixture(scope="session")
def conformance(build):
    """Runs the conformance kit on a library; gives its JSON report. Its limit is for hangs: other tests and builds run beside it."""

    def run(library: pathlib.Path, *options: str) -> dict:
        command = [str(build / "bin/tenon-conformance"), str(library), "--json", "--time-limit", "240", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode in (0, 1), done.stderr
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def run_graph(build, tmp_path):
    """Runs a graph, given as text, without passes on a backend of a folder; gives the report of ``tenon run``, and keeps ``errors``."""

    def run(graph: str, backend: str, folder: pathlib.Path | None = None, *options: str) -> dict:
        file = tmp_path / "graph.tir"
        file.write_text(graph)
        command = [str(build / "bin/tenon"), "run", str(file), "--json", "--backend", backend, "--set", "passes.pipeline=", *options]
        environment = {**os.environ, "TENON_PLUGIN_PATH": str(folder or ""), "TENON_CACHE": "false"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert done.returncode == 0, done.stderr
        run.errors = done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def golden(build):
    """Runs golden files against the passes in a folder; gives the finished process."""

    def run(files: pathlib.Path, plugins: pathlib.Path) -> subprocess.CompletedProcess:
        return subprocess.run([str(build / "bin/golden_test"), str(files), str(plugins)], capture_output=True, text=True, timeout=300)

    return run
