"""A short seeded run of the program fuzzer; `python tests/fuzz_python` runs for as long as one likes."""
import pathlib
import subprocess
import sys


def test_random_programs():
    fuzzer = pathlib.Path(__file__).parents[1] / "fuzz_python"
    run = subprocess.run([sys.executable, str(fuzzer), "--seed", "7", "--count", "300", "--seconds", "120"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    verdicts = run.stdout.splitlines()[-1]
    assert int(verdicts.split(" same")[0].split()[-1]) > 150, verdicts
