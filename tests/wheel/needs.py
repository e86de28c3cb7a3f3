"""Run in an environment that holds the wheel: what its files need of a system is there on Debian 12 and on Ubuntu 24.04."""
import pathlib
import re
import subprocess

import tenon

NEWEST_GLIBC = (2, 36)  # Debian 12's
OF_EVERY_SYSTEM = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}

home = pathlib.Path(tenon.__file__).parent
files = [path for path in home.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
brought = {path.name for path in files}
for path in files:
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout))
    assert needed <= OF_EVERY_SYSTEM | brought, f"{path} needs {needed - OF_EVERY_SYSTEM - brought}"
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout)
    newest = max(((int(major), int(minor)) for major, minor in versions), default=(2, 0))
    assert newest <= NEWEST_GLIBC, f"{path} needs glibc {newest}"
print(f"{len(files)} files of the wheel need nothing but glibc {'.'.join(map(str, NEWEST_GLIBC))} and libstdc++")
