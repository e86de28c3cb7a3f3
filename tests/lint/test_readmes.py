"""READMEs and pages of docs lead to files that are there, and a room's README names each of its files."""
import re

import pytest
from tests.lint.test_lint import ROOT, tracked
from tests.lint.test_rooms import LAYERS, PACKAGE, rooms_of, rooms_of_package

PAGES = [path for path in tracked(".", suffixes={".md"}) if "CHANGELOG" not in path.name]
# Files, and the folders that hold them.
PLACES = {str(place) for path in tracked(".", suffixes={".h", ".cpp", ".py", ".cmake", ".toml", ".md"}) for place in (path, *path.parents)}
# What is made by a build or an installation.
MADE = re.compile(r"(build|PREFIX|lib|share)/")


def leads_somewhere(words: str, page) -> bool:
    """Whether words name a file (with its ending or without) or a folder from the page's folder up, or are the end of a path."""
    wanted = [words.strip("/") + ending for ending in ("", ".cpp", ".h", ".py")]
    up = [folder for folder in page.parents if folder.is_relative_to(ROOT)]
    return any((folder / one).exists() for folder in up for one in wanted) or any(place.endswith("/" + one) for one in wanted for place in PLACES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_of_a_page_are_there(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    names = [name for name in re.findall(r"`([\w./-]+)`", text) if "/" in name or re.search(r"\.(cpp|h|py|toml|cmake|md)$", name)]
    assert [name for name in links + names if not MADE.match(name) and not leads_somewhere(name, page)] == []


@pytest.mark.parametrize("layer", LAYERS)
def test_readmes_name_the_files_of_their_rooms(layer):
    missing = []
    for room, paths in rooms_of(layer).items():
        text = (ROOT / layer / room / "README.md").read_text()
        missing += [str(path.relative_to(ROOT)) for path in paths if not re.search(rf"\b{re.escape(path.stem)}\b", text)]
    assert missing == []


def test_readmes_name_the_modules_of_folders_of_the_package():
    missing = []
    for room, paths in rooms_of_package().items():
        if room != ".":
            text = (ROOT / PACKAGE / room / "README.md").read_text()
            missing += [str(path.relative_to(ROOT)) for path in paths if path.stem != "__init__" and f"`{path.stem}`" not in text]
    assert missing == []
