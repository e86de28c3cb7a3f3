"""Headless Chromium: a page after a script has run in it, and pictures of it."""
from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")

# Runs when the page has drawn itself. `answer` is what the body of the script returns.
BEHIND = """<script>
const until = async (asked) => { for (let i = 0; i < 200 && !asked(); ++i) await new Promise((done) => setTimeout(done, 20)); return asked(); };
addEventListener("load", async () => {
  await until(() => document.querySelector("nav button"));
  let answer;
  try { answer = await (async () => { %s })(); } catch (failure) { answer = { failure: String(failure) }; }
  const said = document.createElement("template");
  said.id = "answer";
  said.setAttribute("data-json", encodeURIComponent(JSON.stringify(answer ?? null)));
  document.body.append(said);
});
</script></body>"""


def program() -> str:
    """The browser. Raises where there is none."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not found:
        raise RuntimeError(f"a browser is needed ({' or '.join(PROGRAMS)}): apt-get install chromium")
    return found


def _run(page: pathlib.Path, *arguments: str) -> str:
    words = [program(), "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000", "--virtual-time-budget=20000", *arguments, f"file://{page}"]
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=300).stdout


def _with_script(page: pathlib.Path, script: str) -> pathlib.Path:
    changed = page.with_name(f"{page.stem}-driven.html")
    changed.write_text(page.read_text().replace("</body>", BEHIND % script))
    return changed


def answer(page: pathlib.Path, script: str):
    """What the body of an async function gives that runs in the page."""
    found = re.search(r'<template id="answer" data-json="([^"]*)"', _run(_with_script(page, script), "--dump-dom"))
    assert found, "the script has not ended"
    from urllib.parse import unquote

    said = json.loads(unquote(found[1]))
    assert not (isinstance(said, dict) and "failure" in said), said
    return said


def picture(page: pathlib.Path, script: str, path: pathlib.Path) -> None:
    """The page after the script, as a PNG."""
    _run(_with_script(page, script), f"--screenshot={path}")
