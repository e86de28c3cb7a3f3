"""Each sample runs as its README says."""
import pathlib
import re
import shlex
import subprocess

import pytest

SAMPLES = pathlib.Path(__file__).parents[2] / "samples"


def commands(readme: pathlib.Path) -> list[str]:
    """The commands of the README's sh blocks, without comments and placeholders."""
    blocks = re.findall(r"```sh\n(.*?)```", readme.read_text(), re.S)
    return [line.split("  #")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


@pytest.mark.xdist_group("core_with_gcc")
@pytest.mark.timeout(900)  # one of them compiles core
@pytest.mark.parametrize("folder", sorted(p for p in SAMPLES.iterdir() if (p / "README.md").exists()), ids=lambda p: p.name)
def test_sample_runs_as_its_readme_says(folder, sample_environment, tmp_path):
    torch_needed = any("import torch" in p.read_text() for p in folder.glob("*.py"))
    if torch_needed:
        pytest.importorskip("torch")
    work = tmp_path / folder.name
    subprocess.run(["cp", "-r", str(folder), str(work)], check=True)
    lines = commands(folder / "README.md")
    assert lines, "a sample's README shows how to run it"
    for line in lines:
        line = line.replace("/path/to/installed/tenon", sample_environment["SDK"])
        done = subprocess.run(line, shell=True, cwd=work, env=sample_environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip(), f"{line} printed nothing"


@pytest.mark.parametrize("folder", sorted(p for p in SAMPLES.iterdir() if p.is_dir()), ids=lambda p: p.name)
def test_sample_is_small(folder):
    for path in folder.rglob("*"):
        if path.suffix in (".py", ".cpp", ".tir"):
            assert len(path.read_text().splitlines()) < 100, path


def test_commands_are_words_a_shell_splits():
    for readme in SAMPLES.glob("*/README.md"):
        for line in commands(readme):
            assert shlex.split(line)
