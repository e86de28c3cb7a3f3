"""The plugins in docs/plugins.md build as they stand there."""
import re

import pytest
from sdk_project import ROOT, exported_symbols

pytestmark = pytest.mark.timeout(1200)  # may be the first to build the project that holds core


def test_documented_plugins_build_and_work(with_gcc, conformance):
    for name in ("negate", "tidy", "lines"):
        assert exported_symbols(with_gcc / f"{name}.so") == ["tenon_plugin_entry"]
    report = conformance(with_gcc / "negate.so", "--filter", "neg")
    assert report["failures"] == [] and report["passed"] > 0


def test_reason_codes_are_documented():
    """Each code that a first-party plugin gives is in the table."""
    page = (ROOT / "docs/plugins.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    used = set()
    for path in [*(ROOT / "plugins").rglob("*.cpp"), *(ROOT / "sdk").rglob("*.cpp"), *(ROOT / "samples").rglob("*.cpp")]:
        used |= set(re.findall(r'\brefuse\([^,;]+,\s*"(\w+)"', path.read_text()))
    assert used and used <= documented
