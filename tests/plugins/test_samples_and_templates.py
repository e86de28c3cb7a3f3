"""The sample plugins and the templates build from the installed package alone, and work."""
import pathlib
import re
import shutil
import subprocess

import pytest
from sdk_project import ROOT, exported_symbols


def refusal(action, *arguments) -> str:
    """What a build that must fail says, on one line: CMake wraps its messages."""
    with pytest.raises(AssertionError) as failure:
        action(*arguments)
    return " ".join(str(failure.value).split())


def lines_of(path: pathlib.Path) -> int:
    return len(path.read_text().splitlines())


@pytest.fixture(scope="module")
def sample_backend(out_of_tree):
    return out_of_tree.build(ROOT / "samples/04_backend_plugin", "sample_backend")


def test_a_complete_backend_is_short():
    assert lines_of(ROOT / "samples/04_backend_plugin/three_ops.cpp") <= 60
    assert lines_of(ROOT / "samples/04_backend_plugin/CMakeLists.txt") <= 8


def test_sample_backend_exports_its_entry_alone(sample_backend):
    assert exported_symbols(sample_backend / "three_ops.so") == ["tenon_plugin_entry"]


def test_sample_backend_passes_the_conformance_kit(sample_backend, conformance):
    report = conformance(sample_backend / "three_ops.so")
    assert report["failures"] == []
    claimed = {op for op, dtypes in report["by_op"].items() if any(counts["passed"] for counts in dtypes.values())}
    assert claimed == {"add", "mul", "relu"}
    assert {"op", "dtype", "shape"} <= set(report["not_claimed_reasons"])


def test_template_backend_passes_the_conformance_kit(sdk, out_of_tree, conformance):
    plugins = out_of_tree.build(sdk / "share/tenon/template/backend", "template_backend")
    report = conformance(plugins / "my_backend.so", "--filter", "neg,abs")
    assert report["failures"] == []
    assert report["by_op"]["neg"]["f32"]["passed"] > 0
    assert "passed" not in {k for counts in report["by_op"]["abs"].values() for k, n in counts.items() if n}


@pytest.mark.parametrize("wrong, message", [("three_ops engine", "the kind must be backend, passes or frontend"), ("Three backend", "must be a lower-case letter")])
def test_a_wrong_call_is_told_what_is_right(out_of_tree, tmp_path, wrong, message):
    source = tmp_path / "wrong"
    shutil.copytree(ROOT / "samples/04_backend_plugin", source)
    listing = source / "CMakeLists.txt"
    listing.write_text(listing.read_text().replace("three_ops backend", wrong))
    assert message in refusal(out_of_tree.configure, source, wrong.replace(" ", "_"))


def test_a_library_without_entry_does_not_build(out_of_tree, tmp_path):
    source = tmp_path / "no_entry"
    shutil.copytree(ROOT / "samples/04_backend_plugin", source)
    code = source / "three_ops.cpp"
    code.write_text(code.read_text().replace("TENON_BACKEND(", "// TENON_BACKEND("))
    assert "has no entry: write TENON_BACKEND" in refusal(out_of_tree.build, source, "no_entry")


def test_a_second_exported_symbol_does_not_build(out_of_tree, tmp_path):
    source = tmp_path / "two_symbols"
    shutil.copytree(ROOT / "samples/04_backend_plugin", source)
    listing = source / "CMakeLists.txt"
    # A version script of the author's own, which lets one more symbol out.
    (source / "more.map").write_text("{ global: tenon_plugin_entry; also_this; };\n")
    listing.write_text(listing.read_text() + "set_property(TARGET three_ops PROPERTY LINK_OPTIONS LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/more.map)\n")
    code = source / "three_ops.cpp"
    code.write_text(code.read_text() + '\nextern "C" __attribute__((visibility("default"))) int also_this() { return 0; }\n')
    assert re.search(r"may export tenon_plugin_entry only; it exports: .*also_this", refusal(out_of_tree.build, source, "two_symbols"))


GRAPHS_WITH_CONSTANTS = {
    "neg": """graph @g (%x: f32[4]) {
  const @k: f32[4] = [1, -2, 0, 3]
  %c: f32[4] = constant() {index = @k}
  %a: f32[4] = neg(%c)
  %b: f32[4] = neg(%x)
  %d: f32[4] = neg(%a)
  return %a, %b, %d
}
""",
    "add": """graph @g (%x: f32[4]) {
  const @k: f32[4] = [1, -2, 0, 3]
  const @m: f32[4] = [5, 6, -7, 8]
  %c: f32[4] = constant() {index = @k}
  %d: f32[4] = constant() {index = @m}
  %e: f32[4] = add(%x, %c)
  %f: f32[4] = mul(%d, %e)
  %g: f32[4] = add(%c, %c)
  %h: f32[4] = mul(%c, %d)
  %i: f32[4] = relu(%d)
  return %f, %g, %h, %i, %e
}
""",
    "numbers": """graph @g (%x: f32[]) {
  %a: f32[] = add(%x, 1.5)
  %b: f32[] = mul(-2.0, %a)
  %c: f32[] = relu(%b)
  %d: f32[] = neg(%b)
  %e: f64[] = neg(1.5)
  %f: f64[] = relu(-2.5)
  return %a, %c, %d, %e, %f
}
""",
    "constant alone": """graph @g () {
  const @k: f32[4] = [1, -2, 0, 3]
  %c: f32[4] = constant() {index = @k}
  %a: f32[4] = neg(%c)
  %b: f32[4] = relu(%a)
  return %b, %c
}
""",
}


@pytest.mark.parametrize("graph", GRAPHS_WITH_CONSTANTS.values(), ids=GRAPHS_WITH_CONSTANTS.keys())
def test_constants_are_inputs_of_groups_that_do_not_claim_them(graph, sdk, sample_backend, out_of_tree, run_graph):
    template = out_of_tree.build(sdk / "share/tenon/template/backend", "template_backend")
    expected = run_graph(graph, "reference")["outputs"]
    for name, folder, ops in (("three_ops", sample_backend, ("add", "mul", "relu")), ("my_backend", template, ("neg",))):
        done = run_graph(graph, name, folder)
        assert done["outputs"] == expected
        ran = {step["backend"] for step in done["plan"]["steps"] if step["kind"] == "group"}
        assert (name in ran) == any(f"{op}(" in graph for op in ops)


SUBNORMAL = """graph @g () {
  const @k: f32[2] = [1e-30, 1]
  %c: f32[2] = constant() {index = @k}
  %y: f32[2] = mul(%c, 1e-10)
  return %y
}
"""


def test_a_library_built_for_fast_math_changes_the_arithmetic_of_nobody(sdk, out_of_tree, build, run_graph):
    plugins = out_of_tree.build(sdk / "share/tenon/template/backend", "fast_math", "-DCMAKE_CXX_FLAGS=-ffast-math", "-DCMAKE_CXX_COMPILER=g++")
    done = run_graph(SUBNORMAL, "my_backend,reference", plugins)
    assert done["outputs"][0]["first"][0] == pytest.approx(1e-40, rel=1e-4)
    assert "plugin 'my_backend' left flushing of subnormal numbers changed after loading" in run_graph.errors
    refused = subprocess.run([str(build / "bin/tenon-conformance"), str(plugins / "my_backend.so")], capture_output=True, text=True)
    assert refused.returncode == 1 and "loading it leaves flushing of subnormal numbers changed" in refused.stderr
