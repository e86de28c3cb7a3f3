"""Our own plugins have no private road: one of each kind builds out of tree from the installed package, with gcc and libstdc++ and with
clang and a static libc++, and does the same as the one in the tree."""
import json
import re
import shutil
import subprocess

import pytest
from sdk_project import FIRST_PARTY, ROOT, exported_symbols, write_project

pytestmark = pytest.mark.timeout(1200)  # core is compiled once with each compiler


def static_libcxx_options(flags: str) -> list[str] | None:
    """Options for the newest clang that has a static libc++; None where there is none."""
    for version in ("19", "18", "17", "16", "15", ""):
        compiler = shutil.which(f"clang++-{version}" if version else "clang++")
        if not compiler:
            continue
        found = subprocess.run([compiler, "-print-file-name=libc++.a"], capture_output=True, text=True).stdout.strip()
        if "/" in found:
            return [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_CXX_FLAGS={flags} -stdlib=libc++", "-DCMAKE_MODULE_LINKER_FLAGS=-stdlib=libc++ -static-libstdc++"]
    return None


@pytest.fixture(scope="module")
def with_clang(out_of_tree_with_core, tmp_path_factory):
    options = static_libcxx_options(out_of_tree_with_core.environment["CXXFLAGS"])
    if options is None:
        pytest.skip("no clang with a static libc++")
    project = write_project(tmp_path_factory.mktemp("clang") / "project", {name: FIRST_PARTY[name] for name in ("reference", "canonical", "simplify", "cleanup", "text")})
    return out_of_tree_with_core.build(project, "clang", *options)


@pytest.fixture(params=[pytest.param("with_gcc", marks=pytest.mark.xdist_group("core_with_gcc")), "with_clang"])
def plugins(request):
    return request.getfixturevalue(request.param)


def test_manifests_are_those_of_the_tree(plugins, build):
    for manifest in sorted(plugins.glob("*.json")):
        if manifest.stem not in FIRST_PARTY:
            continue
        ours, theirs = (json.loads((folder / manifest.name).read_text()) for folder in (build / "lib/tenon/plugins", plugins))
        for of_content in ("sha256", "size", "version"):
            assert ours.pop(of_content) and theirs.pop(of_content)
        assert ours == theirs


def test_one_exported_symbol(plugins):
    libraries = sorted(plugins.glob("*.so"))
    assert libraries
    for library in libraries:
        assert exported_symbols(library) == ["tenon_plugin_entry"], library


def test_no_shared_libcxx(with_clang):
    for library in with_clang.glob("*.so"):
        needed = subprocess.run(["readelf", "-d", str(library)], check=True, capture_output=True, text=True).stdout
        assert not re.search(r"NEEDED.*lib(std)?c\+\+", needed)


@pytest.mark.xdist_group("core_with_gcc")
def test_backend_passes_the_conformance_kit(with_gcc, conformance):
    report = conformance(with_gcc / "reference.so", "--filter", "add,mul,remainder,where,silu,softmax*,sum,var,matmul,mm,gather,sort")
    assert report["failures"] == []
    assert report["passed"] > 500


def test_backend_of_another_compiler_passes_the_whole_conformance_kit(with_clang, conformance):
    report = conformance(with_clang / "reference.so")
    assert report["failures"] == []
    assert report["passed"] > 4000


def test_passes_give_the_golden_results(plugins, golden):
    done = golden(ROOT / "tests/golden", plugins)
    assert done.returncode == 0, done.stdout


@pytest.mark.xdist_group("core_with_gcc")
def test_sample_and_template_passes(with_gcc, golden, tmp_path):
    (tmp_path / "quartic.tir").write_text(
        "# x ** 4\n# passes: cheaper_powers\n# not evaluated: the product rounds in another way\n" + (ROOT / "samples/05_pass_plugin/quartic.tir").read_text()
        + "# ---- becomes\ngraph @quartic (%x: f32[8]) {\n  %mul: f32[8] = mul(%x, %x)\n  %y: f32[8] = mul(%mul, %mul)\n  return %y\n}\n")
    (tmp_path / "doubled.tir").write_text(
        "# x + x\n# passes: my_pass\ngraph @main (%x: f32[8]) {\n  %y: f32[8] = add(%x, %x)\n  return %y\n}\n"
        "# ---- becomes\ngraph @main (%x: f32[8]) {\n  %y: f32[8] = mul(%x, 2)\n  return %y\n}\n")
    done = golden(tmp_path, with_gcc)
    assert done.returncode == 0, done.stdout
