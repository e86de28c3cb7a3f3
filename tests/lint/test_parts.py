"""The parts of the evaluator say in their headers which others they ask: `/// Asks calls, operators.`
Free functions of a file are of its part."""
import re

import pytest
from tests.lint.test_lint import ROOT, tracked

FRONTEND = "plugins/frontends/python"
CORE = (ROOT / FRONTEND / "evaluator/evaluator.h").read_text()
PARTS = {accessor: name for name, accessor in re.findall(r"^  (\w+)& (\w+)\(\) \{ return \2_; \}$", CORE, re.M) if name not in ("Heap", "Recorder")}


def asked_in_headers() -> dict[str, str]:
    found = {}
    for path in tracked(FRONTEND):
        if path.suffix == ".h" and path.parent.name in ("evaluator", "capture"):
            found |= {name: asks for asks, name in re.findall(r"^/// Asks ([^.]*)\.\nclass (\w+) \{", path.read_text(), re.M)}
    return found


def asked_in_code() -> dict[str, set[str]]:
    found = {}
    for path in tracked(FRONTEND):
        if path.suffix == ".cpp" and path.parent.name in ("evaluator", "capture"):
            text = path.read_text()
            for name in re.findall(r"^(?:[^\s/].*[ &*])?(\w+)::\w+\(", text, re.M):
                found.setdefault(name, set()).update(set(re.findall(r"\b(?:core_|evaluator_?)\.(\w+)\(\)\.", text)) & PARTS.keys())
    return found


@pytest.mark.parametrize("part", [*PARTS.values(), "FrameChain"])
def test_a_part_says_which_others_it_asks(part):
    said, asks = asked_in_headers()[part], {asked for asked in asked_in_code()[part] if PARTS[asked] != part}
    assert said == (", ".join(sorted(asks)) or "no other part")
