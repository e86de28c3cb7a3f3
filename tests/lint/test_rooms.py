"""Rooms: the folders of a layer. Their order stands in docs/rooms.toml; includes point to rooms that come earlier there."""
import re
import tomllib

import pytest
from tests.lint.test_lint import ROOT, tracked

LAYERS = tomllib.loads((ROOT / "docs/rooms.toml").read_text())
# What an include of another file of the layer may start from, besides the folder of the file itself.
ROOTS = ["framework", "plugins/frontends", "plugins/backends/codegen", "plugins/backends/llvm", "plugins/backends/cuda", "plugins/passes"]
MOST_FILES = 45
PACKAGE = "plugins/frontends/python/package/tenon"


def rooms_of(layer: str) -> dict[str, list]:
    """Sources of a layer by room; the package and the samples of a layer are none."""
    rooms = {}
    for path in tracked(layer):
        if "package" not in path.parts:
            rooms.setdefault(str(path.parent.relative_to(ROOT / layer)), []).append(path)
    return rooms


def included(path, line: str):
    """The file of the tree that an include names, or nothing."""
    match = re.match(r'\s*#\s*include "([^"]+)"', line)
    if not match:
        return None
    for start in [path.parent, *(ROOT / root for root in ROOTS)]:
        if (start / match[1]).is_file():
            return start / match[1]
    return None


@pytest.mark.parametrize("layer", LAYERS)
def test_every_room_is_listed(layer):
    assert set(rooms_of(layer)) == set(LAYERS[layer])


@pytest.mark.parametrize("layer", LAYERS)
def test_rooms_include_what_comes_before_them(layer):
    order = list(LAYERS[layer])
    wrong = []
    for room, paths in rooms_of(layer).items():
        for path in paths:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                target = included(path, line)
                if target is None or ROOT / layer not in target.parents:
                    continue
                other = str(target.parent.relative_to(ROOT / layer))
                if order.index(other) > order.index(room):
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: {room} includes {other}, which comes after it: {line.strip()}")
    assert wrong == []


@pytest.mark.parametrize("layer", LAYERS)
def test_rooms_can_be_known(layer):
    assert {room: len(paths) for room, paths in rooms_of(layer).items() if len(paths) > MOST_FILES} == {}


def rooms_of_package() -> dict[str, list]:
    """Modules of the Python package by folder."""
    rooms = {}
    for path in tracked(PACKAGE, suffixes={".py", ".pyi"}):
        rooms.setdefault(str(path.parent.relative_to(ROOT / PACKAGE)), []).append(path)
    return rooms


def test_folders_of_the_package_can_be_known():
    assert {room: len(paths) for room, paths in rooms_of_package().items() if len(paths) > MOST_FILES} == {}
