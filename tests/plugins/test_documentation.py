"""The plugins in docs/plugins.md build as they stand there."""
import re

from sdk_project import ROOT, exported_symbols


def test_snippets_build(out_of_tree, conformance, tmp_path):
    page = (ROOT / "docs/plugins.md").read_text()
    source = tmp_path / "snippets"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(re.search(r"```cmake\n(.*?)```", page, re.S).group(1))
    for code in re.findall(r"```cpp\n(.*?)```", page, re.S):
        (source / re.match(r"// (\w+\.cpp)\n", code).group(1)).write_text(code)
    plugins = out_of_tree.build(source, "snippets")
    assert sorted(path.name for path in plugins.glob("*.so")) == ["lines.so", "negate.so", "tidy.so"]
    for library in plugins.glob("*.so"):
        assert exported_symbols(library) == ["tenon_plugin_entry"]
    report = conformance(plugins / "negate.so", "--filter", "neg")
    assert report["failures"] == [] and report["passed"] > 0


def test_reason_codes_are_documented():
    """Each code that a first-party plugin gives is in the table."""
    page = (ROOT / "docs/plugins.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    used = set()
    for path in [*(ROOT / "plugins").rglob("*.cpp"), *(ROOT / "sdk").rglob("*.cpp"), *(ROOT / "samples").rglob("*.cpp")]:
        used |= set(re.findall(r'\brefuse\([^,;]+,\s*"(\w+)"', path.read_text()))
    assert used and used <= documented
