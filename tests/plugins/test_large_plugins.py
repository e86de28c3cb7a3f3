"""The backends that generate code, and the Python frontend, from the installed SDK: they build without the tree, and work beside a libtenon
that knows them by their manifests only. One of them is built here; all of them by the stage `sdk` of scripts/test."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from sdk_project import LARGE, ROOT, exported_symbols, write_project

pytestmark = [pytest.mark.xdist_group("core_with_gcc"), pytest.mark.timeout(1800)]  # minutes where the compiler cache is empty

ALL = os.environ.get("TENON_TEST_SDK") == "all"
BUILT = LARGE if ALL else {name: LARGE[name] for name in ("codegen", "llvm")}
of_all = pytest.mark.skipif(not ALL, reason="built by scripts/test sdk")


@pytest.fixture(scope="module")
def prefix(build, out_of_tree_with_core, tmp_path_factory) -> pathlib.Path:
    """An installation whose large plugins come from a project out of tree."""
    folder = tmp_path_factory.mktemp("large")
    out_of_tree_with_core.build(write_project(folder / "project", BUILT), "large", f"-DPython_EXECUTABLE={sys.executable}")
    made = folder / "prefix"
    shutil.copytree(out_of_tree_with_core.sdk, made, symlinks=True)
    if "python" in BUILT:
        shutil.rmtree(made / "lib/python")
    for of_the_tree in [path for name in BUILT for path in (made / "lib/tenon/plugins").glob(f"{name}.*")]:
        of_the_tree.unlink()
    subprocess.run(["cmake", "--install", str(out_of_tree_with_core.folder / "large"), "--prefix", str(made)], check=True, capture_output=True)
    return made


def test_each_is_configured(out_of_tree_with_core, tmp_path):
    out_of_tree_with_core.configure(write_project(tmp_path / "project", LARGE), "configured", f"-DPython_EXECUTABLE={sys.executable}")


@pytest.mark.parametrize("name", LARGE)
def test_each_includes_what_is_installed(installation, name):
    folders = (installation / "include/tenon", installation / "include")
    wanted = {found for file in LARGE[name].rglob("*") if file.suffix in (".h", ".cpp") for found in re.findall(r'#include ["<]((?:core|host|tenon)/[^">]+)', file.read_text())}
    assert wanted and [include for include in sorted(wanted) if not any((folder / include).is_file() for folder in folders)] == []


@pytest.mark.parametrize("name", ["llvm", pytest.param("cuda", marks=of_all), pytest.param("python", marks=of_all)])
def test_manifests_are_those_of_the_tree(prefix, build, name):
    theirs, ours = (json.loads((folder / "lib/tenon/plugins" / f"{name}.json").read_text()) for folder in (prefix, build))
    for of_content in ("sha256", "size", "version"):
        theirs.pop(of_content, None), ours.pop(of_content, None)
    assert theirs == ours


@pytest.mark.parametrize("name", ["llvm", pytest.param("cuda", marks=of_all)])
def test_one_exported_symbol(prefix, name):
    assert exported_symbols(prefix / f"lib/tenon/plugins/{name}.so") == ["tenon_plugin_entry"]


@of_all
def test_the_extension_exports_its_initialisation(prefix):
    (extension,) = (prefix / "lib/python/tenon").glob("_tenon.*.so")
    assert exported_symbols(extension) == ["PyInit__tenon"]


def test_llvm_passes_the_conformance_kit(prefix, conformance):
    report = conformance(prefix / "lib/tenon/plugins/llvm.so", "--filter", "add,mul,silu,softmax*,sum,conv*,matmul,mm,gather,sort")
    assert report["failures"] == []
    assert report["passed"] > 500


@of_all
def test_the_frontend_passes_tests_of_the_tree(prefix):
    environment = {**os.environ, "PYTHONPATH": str(prefix / "lib/python"), "TENON_BUILD": str(prefix), "TENON_CACHE": "false"}
    where = subprocess.run([sys.executable, "-c", "import tenon; print(tenon.__file__)"], capture_output=True, text=True, env=environment)
    assert pathlib.Path(where.stdout.strip()).is_relative_to(prefix), where.stderr
    chosen = ["tests/python/breaks/test_control_flow.py", "tests/python/export/test_export.py"]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen], cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-4000:]
