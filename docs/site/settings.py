"""The page of settings and logs, as the command tells them."""
from __future__ import annotations

import json
import pathlib
import re
import subprocess

from docs.site.markdown import cell, code


def asked(build: pathlib.Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([build / "bin/tenon", *words], check=True, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **environment})


def logs(build: pathlib.Path) -> list[tuple[str, str]]:
    return re.findall(r"^  (\w+) +(.*)$", asked(build, "flags", TENON_LOGS="help").stderr, re.M)


def page(build: pathlib.Path) -> str:
    flags = json.loads(asked(build, "flags", "--json").stdout)
    lines = [
        "# Settings and logs", "",
        "Every setting, as `tenon flags` prints it with the value that it has and where that came from. In `tenon.toml` a setting stands in the section before its "
        "dot; the environment variable goes first, and arguments before it.", "",
        "| in `tenon.toml` | environment | takes | default | meaning |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for flag in flags:
        given = flag["value"] if flag["origin"].partition(":")[0].endswith("defaults.toml") else flag["default"]  # what is installed with Tenon says some
        default = json.dumps(given) if given not in ("", []) else ""
        lines.append(f"| `{flag['key']}` | `{flag['environment']}` | {flag['type']} | {code(default) if default else ''} | {cell(flag['meaning'])} |")
    lines += ["", "## Logs", "", "`TENON_LOGS=name,name`, or `tenon.set_logs(name=True)`; `TENON_LOGS=help` prints this list.", "", "| log | what it tells |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {cell(meaning)} |" for name, meaning in logs(build)), ""])

