"""The kit's own manners: what is no backend is refused, and nothing in it names an op."""
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def run(build, *arguments):
    return subprocess.run([str(build / "bin/tenon-conformance"), *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_every_first_party_backend_passes(kit, build):
    backends = [p for p in (build / "lib/tenon/plugins").glob("*.json") if json.loads(p.read_text())["kind"] == "backend" and p.with_suffix(".so").exists()]
    assert backends
    for manifest in backends:
        _, report = kit(manifest.with_suffix(".so"), "--time-limit", "240")  # builds may run beside it
        assert report["failures"] == [], manifest.stem


def test_a_library_of_passes_is_no_backend(build):
    done = run(build, build / "lib/tenon/plugins/cleanup.so")
    assert done.returncode == 1 and "cleanup is no backend" in done.stderr


def test_what_is_no_library_is_refused(build, tmp_path):
    text = tmp_path / "text.so"
    text.write_text("no library")
    done = run(build, text)
    assert done.returncode == 1 and "cannot be loaded" in done.stderr


def test_wrong_usage(build):
    assert run(build).returncode == 2
    assert run(build, "/no/such/file.so").returncode == 2
    done = run(build, build / "tests/plugins/mutants.so", "--filter", "no_such_op*")
    assert done.returncode == 2 and "no op matches 'no_such_op*'" in done.stderr


def test_the_kit_names_no_op(kit, build):
    ops = set(kit(build / "lib/tenon/plugins/printer.so")[1]["by_op"])
    words = {word for path in (ROOT / "sdk/conformance").glob("*.cpp") for word in re.findall(r'"(\w+)"', path.read_text())}
    assert len(ops) > 50
    assert words & ops <= {"constant", "index"}  # the structural node that reads a constant, and its attribute
