"""The backends that generate code, and the Python frontend, from the installed SDK: they build without the tree, and work beside a libtenon
that knows them by their manifests only."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from sdk_project import LARGE, ROOT, exported_symbols, write_project

pytestmark = pytest.mark.timeout(1800)  # minutes where the compiler cache is empty


@pytest.fixture(scope="module")
def prefix(build, out_of_tree_with_core, tmp_path_factory) -> pathlib.Path:
    """An installation whose large plugins come from a project out of tree."""
    folder = tmp_path_factory.mktemp("large")
    out_of_tree_with_core.build(write_project(folder / "project", LARGE), "large", f"-DPython_EXECUTABLE={sys.executable}")
    made = folder / "prefix"
    shutil.copytree(out_of_tree_with_core.sdk, made, symlinks=True)
    shutil.rmtree(made / "lib/python")
    for of_the_tree in [path for name in LARGE for path in (made / "lib/tenon/plugins").glob(f"{name}.*")]:
        of_the_tree.unlink()
    subprocess.run(["cmake", "--install", str(out_of_tree_with_core.folder / "large"), "--prefix", str(made)], check=True, capture_output=True)
    return made


@pytest.mark.parametrize("name", ["llvm", "cuda", "python"])
def test_manifests_are_those_of_the_tree(prefix, build, name):
    theirs, ours = (json.loads((folder / "lib/tenon/plugins" / f"{name}.json").read_text()) for folder in (prefix, build))
    for of_content in ("sha256", "size", "version"):
        theirs.pop(of_content, None), ours.pop(of_content, None)
    assert theirs == ours


def test_exported_symbols(prefix):
    assert exported_symbols(prefix / "lib/tenon/plugins/llvm.so") == exported_symbols(prefix / "lib/tenon/plugins/cuda.so") == ["tenon_plugin_entry"]
    (extension,) = (prefix / "lib/python/tenon").glob("_tenon.*.so")
    assert exported_symbols(extension) == ["PyInit__tenon"]


def test_llvm_passes_the_conformance_kit(prefix, conformance):
    report = conformance(prefix / "lib/tenon/plugins/llvm.so", "--filter", "add,mul,silu,softmax*,sum,conv*,matmul,mm,gather,sort")
    assert report["failures"] == []
    assert report["passed"] > 500


def test_the_frontend_passes_tests_of_the_tree(prefix):
    environment = {**os.environ, "PYTHONPATH": str(prefix / "lib/python"), "TENON_BUILD": str(prefix), "TENON_CACHE": "false"}
    where = subprocess.run([sys.executable, "-c", "import tenon; print(tenon.__file__)"], capture_output=True, text=True, env=environment)
    assert pathlib.Path(where.stdout.strip()).is_relative_to(prefix), where.stderr
    chosen = ["tests/python/breaks/test_control_flow.py", "tests/python/export/test_export.py"]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen], cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-4000:]
