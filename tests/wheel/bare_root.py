"""Makes a folder that holds an interpreter and the libraries of the system that it needs itself, libstdc++ besides, and nothing else: to run a wheel in.

Usage: bare_root.py FOLDER PROGRAM... with the interpreter that is wanted there; runs `python PROGRAM...` in the folder as root of the file system, with
what lies in FOLDER/site on its path. Exits 77 where this system does not let one do that.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

CANNOT = 77
# What every manylinux system has: glibc, of which an interpreter may need not all, and libstdc++.
BESIDES = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libstdc++.so.6", "libgcc_s.so.1")


def needed_by(files):
    """The libraries of the system that files are linked to, and the loader."""
    found = set()
    for file in files:
        text = subprocess.run(["ldd", file], capture_output=True, text=True).stdout
        found |= set(re.findall(r"(/\S+) \(0x", text))
    return found


def copy_into(root, path):
    """Copies a file, and where links on the way to it lead, to the same place below the root."""
    target = root / str(path).lstrip("/")
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)


def libraries_by_name(names):
    text = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    return {match[1] for name in names for match in re.finditer(rf"^\s*{re.escape(name)} \(.*x86-64.*\) => (\S+)$", text, re.M)}


def make(root):
    """The interpreter that runs this, with its standard library."""
    standard = pathlib.Path(sysconfig.get_path("stdlib"))
    program = pathlib.Path(os.path.realpath(sys.executable))
    ignored = shutil.ignore_patterns("site-packages", "dist-packages", "__pycache__", "test", "config-*", "idlelib", "tkinter", "_tkinter*")
    shutil.copytree(standard, root / str(standard).lstrip("/"), ignore=ignored, dirs_exist_ok=True)
    copy_into(root, program)
    extensions = [path for path in (standard / "lib-dynload").glob("*.so") if not path.name.startswith("_tkinter")]
    for library in needed_by([program, *extensions]) | libraries_by_name(BESIDES):
        copy_into(root, library)
    for folder in ("proc", "tmp", "dev", "root"):
        (root / folder).mkdir(exist_ok=True)
    (root / "dev" / "null").touch()
    return program


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    if subprocess.run(["unshare", "--map-root-user", "--mount", "true"], capture_output=True).returncode != 0:
        return CANNOT
    program = make(root)
    mount = f"mount --rbind /proc '{root}/proc' && mount --bind /dev/null '{root}/dev/null' && exec chroot '{root}' \"$@\""
    environment = {"PYTHONPATH": "/site", "PATH": "/nowhere", "HOME": "/root"}
    return subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(program), *sys.argv[2:]], env={**environment, "PATH": os.environ["PATH"]}).returncode


if __name__ == "__main__":
    sys.exit(main())
