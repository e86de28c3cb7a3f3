"""Installs a wheel by pip in a bare system, where no compiler and no network is, and runs the smoke test and the demo's programs there.

Usage: system_root.py FOLDER WHEEL SYSTEM, with the interpreter that the wheel is for: the system's own where the versions agree, else this one, copied in.
SYSTEM is debian12 or ubuntu24.04, whose packages are those of the mirror that UBUNTU_MIRROR names. FOLDER keeps the systems, which debootstrap makes once,
and the packages that the programs need. Exits 77 where this system does not let one make it: without root, debootstrap or a mirror.
"""
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

import bare_root

UBUNTU = os.environ.get("UBUNTU_MIRROR")
TREE = pathlib.Path(__file__).resolve().parents[2]
VERSION = "%d.%d" % sys.version_info[:2]


@dataclasses.dataclass(frozen=True)
class System:
    suite: str
    version: str  # of its own Python
    options: tuple[str, ...] = ()
    source: tuple[str, ...] | None = ()  # the mirror and the script of debootstrap's, where they are not those of its own system; None without a mirror


SYSTEMS = {
    "debian12": System("bookworm", "3.11"),
    "ubuntu24.04": System("noble", "3.12", ("--components=main,universe",), (UBUNTU, "/usr/share/debootstrap/scripts/gutsy") if UBUNTU else None),
}
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


def root_of(name, folder):
    """The root of a bare system with its own Python; None without a mirror to make it from."""
    root, made, system = folder / name, folder / f"{name}.made", SYSTEMS[name]
    if not made.exists():
        if system.source is None:
            return None
        shutil.rmtree(root, ignore_errors=True)
        make = ["debootstrap", "--variant=minbase", "--include=python3,python3-venv", *system.options, system.suite, root, *system.source]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        made.touch()
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
    folder, wheel = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    root = root_of(sys.argv[3], folder) if can_make_roots() else None
    if root is None:
        return bare_root.CANNOT
    found, names = packages(folder, wheel)
    python = "/usr/bin/python3" if VERSION == SYSTEMS[sys.argv[3]].version else str(bare_root.make(root))
    for source, target in ((found, "packages"), (TREE / "demo", "tree/demo"), (TREE / "tests/wheel", "tree/tests/wheel")):
        shutil.rmtree(root / target, ignore_errors=True)
        shutil.copytree(source, root / target)
    mount = f"mount --rbind /proc '{root}/proc' && exec chroot '{root}' sh -c \"$@\""
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    return subprocess.run(["unshare", "--mount", "--net", "sh", "-c", mount, "sh", TRIAL, "sh", python, *names], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
