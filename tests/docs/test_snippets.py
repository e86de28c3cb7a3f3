"""Every Python snippet of the README and of docs/ runs, and every configuration is accepted; snippets of one page share a namespace, as a reader would type them."""
import pathlib
import re
import subprocess

import pytest

import tenon

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_snippets_run(page, monkeypatch, tmp_path):
    snippets = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    if any("torch" in s for s in snippets):
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    tenon.reset()  # a reader starts with counters at zero
    namespace: dict = {"__name__": "__snippet__"}
    for number, snippet in enumerate(snippets):
        source = tmp_path / f"{page.stem}_{number}.py"
        source.write_text(snippet)
        exec(compile(snippet, str(source), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", [page for page in PAGES if "```toml" in page.read_text()], ids=lambda p: p.name)
def test_configurations_are_accepted(page, build, tmp_path):
    for snippet in re.findall(r"```toml\n(.*?)```", page.read_text(), re.S):
        (tmp_path / "tenon.toml").write_text(snippet)
        done = subprocess.run([build / "bin/tenon", "--config", tmp_path / "tenon.toml", "flags"], capture_output=True, text=True)
        assert done.returncode == 0 and str(tmp_path) in done.stdout, done.stderr
