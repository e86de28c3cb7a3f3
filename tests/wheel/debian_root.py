"""Installs a wheel by pip in a bare Debian 12, where no compiler and no network is, and runs the smoke test and the demo's programs there.

Usage: debian_root.py FOLDER WHEEL, with the interpreter that the wheel is for: Debian's own where the versions agree, else this one, copied in. FOLDER keeps
the system, which debootstrap makes once, and the packages that the programs need. Exits 77 where this system does not let one make it.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import bare_root

TREE = pathlib.Path(__file__).resolve().parents[2]
VERSION = "%d.%d" % sys.version_info[:2]
OF_DEBIAN_12 = "3.11"
TORCH = "torch==2.13.0+cpu"  # that of scripts/requirements.txt, where an index has it without CUDA
NEEDED = ("numpy", "scikit-image")

# Run in the new root: $1 the interpreter, $2... what to install besides the wheel.
TRIAL = """
set -eu
for compiler in cc gcc c++ g++ clang; do if command -v $compiler; then echo "a compiler is here: $compiler" >&2; exit 1; fi; done
rm -rf /trial
python=$1; shift
$python -m venv /trial
/trial/bin/pip install -q --disable-pip-version-check --no-index --find-links /packages tenon-compiler "$@"
cd /
for program in smoke programs; do /trial/bin/python /tree/tests/wheel/$program.py; done
/trial/bin/tenon plugins list
"""


def system(folder):
    """The root of a bare Debian 12 with its own Python."""
    root = folder / "debian12"
    if not (root / "usr/bin/python3").exists():
        shutil.rmtree(root, ignore_errors=True)
        make = ["debootstrap", "--variant=minbase", "--include=python3,python3-venv", "bookworm", root]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    return root


def can_make_roots():
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        return False
    return subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True).returncode == 0


def packages(folder, wheel):
    """A folder with the wheel and what the programs need, for this interpreter; and the names of the latter."""
    target = folder / f"packages-{VERSION}"
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("tenon_compiler-*"):
        old.unlink()
    shutil.copy2(wheel, target)
    download = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--only-binary", ":all:", "-d", target]
    subprocess.run([*download, *NEEDED], check=True)
    with_torch = subprocess.run([*download, TORCH], capture_output=True).returncode == 0
    return target, (*NEEDED, TORCH) if with_torch else NEEDED


def main():
    folder, wheel = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    if not can_make_roots():
        return bare_root.CANNOT
    root = system(folder)
    found, names = packages(folder, wheel)
    python = "/usr/bin/python3" if VERSION == OF_DEBIAN_12 else str(bare_root.make(root))
    for source, target in ((found, "packages"), (TREE / "demo", "tree/demo"), (TREE / "tests/wheel", "tree/tests/wheel")):
        shutil.rmtree(root / target, ignore_errors=True)
        shutil.copytree(source, root / target)
    mount = f"mount --rbind /proc '{root}/proc' && exec chroot '{root}' sh -c \"$@\""
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    return subprocess.run(["unshare", "--mount", "--net", "sh", "-c", mount, "sh", TRIAL, "sh", python, *names], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
