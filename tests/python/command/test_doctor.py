"""`tenon doctor` and `tenon.doctor()`: what a bug report should say."""
import subprocess
import sys

import numpy as np

import tenon

SECTIONS = {"cache", "layouts", "machine", "plugins", "python", "settings", "tenon", "torch"}


def test_the_report_has_its_sections():
    found = tenon.doctor()
    assert set(found) == SECTIONS
    assert found["tenon"]["version"] == tenon.__version__
    assert found["python"]["numpy"] == np.__version__ and found["python"]["program"] == sys.executable
    assert "backend" in found["plugins"]["llvm"] and "loaded" in found["plugins"]["llvm"]
    assert found["machine"]["threads"].isdecimal() and "glibc" in found["machine"]["system"]
    assert "frames" in found["layouts"]
    for section, entries in found.items():
        assert f"\n{section}\n" in f"\n{found}\n"
        for name, text in entries.items():
            assert isinstance(text, str) and text in str(found), (section, name)


def test_torch_is_described_where_it_is_installed():
    import pytest

    torch = pytest.importorskip("torch")
    found = tenon.doctor()
    assert found["torch"]["version"] == torch.__version__ and "cards" in found["torch"]
    assert {"tensors", "gradients"} <= set(found["layouts"])


def test_it_works_without_torch():
    program = "import sys; sys.modules['torch'] = None; import tenon; found = tenon.doctor(); assert found['torch'] == {'not used': 'it is not installed'}, found; print(found)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and "torch" in done.stdout, done.stderr


def test_the_command_prints_it(tenon_command):
    result = tenon_command("doctor", TENON_THREADS="2")
    assert result.status == 0, result.err
    assert "processor" in result.out and "python" in result.out and "runtime.threads" in result.out
    assert set(tenon_command("doctor", "--json").json) == SECTIONS


def test_a_refused_plugin_is_told_with_its_reason(tenon_command, tmp_path):
    (tmp_path / "words.so").write_text("words")
    (tmp_path / "words.json").write_text('{"manifest": 1, "name": "words", "kind": "backend", "version": "1.0"}')
    result = tenon_command("doctor", "--json", TENON_PLUGIN_PATH=str(tmp_path))
    told = {name: text for name, text in result.json["plugins"].items() if name.startswith("words")}
    assert len(told) == 1 and "refused" in next(iter(told.values())), result.json["plugins"]


def test_a_wrong_configuration_is_a_finding(tenon_command):
    result = tenon_command("doctor", TENON_BACKENDS="lvm")
    assert result.status == 0 and "did you mean 'llvm'" in result.out + result.err


def test_without_a_python_that_has_tenon_the_host_answers(tenon_command):
    """As on a machine where the package is not installed for the `python3` that is found."""
    result = tenon_command("doctor", "--json", PYTHONSAFEPATH="1", PYTHONHOME="/nowhere")
    assert result.status == 0 and {"machine", "plugins", "cache", "tenon"} <= set(result.json), result.err
