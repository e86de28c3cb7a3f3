"""The plugins in docs/plugins.md build as they stand there."""
import re

import pytest
from sdk_project import ROOT, exported_symbols

pytestmark = [pytest.mark.xdist_group("core_with_gcc"), pytest.mark.timeout(1200)]  # may be the first to build the project that holds core


def test_documented_plugins_build_and_work(with_gcc, conformance):
    for name in ("negate", "tidy", "lines"):
        assert exported_symbols(with_gcc / f"{name}.so") == ["tenon_plugin_entry"]
    report = conformance(with_gcc / "negate.so", "--filter", "neg")
    assert report["failures"] == [] and report["passed"] > 0


def test_the_documented_backend_takes_constants_as_inputs(with_gcc, run_graph):
    graph = "graph @g () {\n  const @k: f32[3] = [1, -2, 0]\n  %c: f32[3] = constant() {index = @k}\n  %a: f32[3] = neg(%c)\n  return %a\n}\n"
    done = run_graph(graph, "negate", with_gcc)
    assert done["outputs"][0]["first"] == [-1.0, 2.0, -0.0]
    assert [step["backend"] for step in done["plan"]["steps"]] == ["negate"]


def test_reason_codes_are_documented():
    """Each code that a first-party plugin gives is in the table."""
    page = (ROOT / "docs/plugins.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    used = set()
    for path in [*(ROOT / "plugins").rglob("*.cpp"), *(ROOT / "sdk").rglob("*.cpp"), *(ROOT / "samples").rglob("*.cpp")]:
        used |= set(re.findall(r'\brefuse\([^,;]+,\s*"(\w+)"', path.read_text()))
    assert used and used <= documented
