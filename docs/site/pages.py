"""The pages of the site, in the places that they have in the repository: those that are written, those that are generated, and what they lead to."""
from __future__ import annotations

import os
import pathlib
import posixpath
import re
import shutil
import tomllib
from collections.abc import Callable

from docs.site import headers, headers_cpp, messages, ops, package, settings
from docs.site.markdown import LINK, outside_code, title, with_lists

LANGUAGES = {".py": "python", ".pyi": "python", ".h": "cpp", ".cpp": "cpp", ".hpp": "cpp", ".toml": "toml", ".cmake": "cmake", ".txt": "cmake", ".json": "json", "": "sh"}
PICTURES = {".svg", ".png"}


def generated(root: pathlib.Path, build: pathlib.Path) -> dict[str, Callable[[], str]]:
    """Pages that are made of sources and of the built command. Written pages link to the module that makes one."""
    return {
        "docs/site/messages.py": lambda: messages.page(root),
        "docs/site/settings.py": lambda: settings.page(build),
        "docs/site/ops.py": lambda: ops.page(root, build),
        "docs/site/package.py": lambda: package.page(root),
        "docs/site/headers.py": lambda: headers.page(root),
        "docs/site/headers_cpp.py": lambda: headers_cpp.page(root),
    }


class Site:
    """The pages by their places, collected from where the navigation begins along all links."""

    def __init__(self, root: pathlib.Path, build: pathlib.Path) -> None:
        self.root = root
        self.generated = generated(root, build)
        self.pages: dict[str, str] = {}  # place in the site: text
        self.pictures: set[str] = set()
        self._waiting = ["README.md", "CHANGELOG.md", *(f"docs/{path.name}" for path in sorted((root / "docs").glob("*.md"))), *self.generated]
        self._waiting += [str(path.relative_to(root)) for layer in rooms(root) for path in layer[1]]
        self._waiting += [str(path.relative_to(root)) for path in sorted((root / "samples").glob("*/README.md"))]
        while self._waiting:
            source = self._waiting.pop()
            if place_of(source) not in self.pages:
                self.pages[place_of(source)] = ""
                self.pages[place_of(source)] = self._text(source)

    def _text(self, source: str) -> str:
        if source in self.generated:
            return self._linked(self.generated[source](), "docs/page.md")
        path = self.root / source
        if path.is_dir():
            listed = sorted(one.name for one in path.iterdir() if not one.name.startswith((".", "__")))
            return "\n".join([f"# {source}", "", *(f"- `{name}`" for name in listed), ""])
        if path.suffix != ".md":
            return f"# {source}\n\n{fenced(path)}\n"
        text = with_lists(path.read_text())
        if source.startswith("samples/") and path.name == "README.md":
            text += "".join(f"\n## {one.name}\n\n{fenced(one)}\n" for one in sorted(path.parent.iterdir()) if one.is_file() and one != path)
        return self._linked(text, source)

    def _linked(self, text: str, source: str) -> str:
        """The text with links to files and folders made links to their pages, which are then needed."""
        folder = posixpath.dirname(source)

        def to_page(match: re.Match) -> str:
            if not match[1] or "://" in match[1] or match[1].startswith("mailto:"):
                return match[0]
            target = posixpath.normpath(posixpath.join(folder, match[1]))
            if (self.root / target / "README.md").exists():
                target += "/README.md"
            if pathlib.PurePosixPath(target).suffix in PICTURES:
                self.pictures.add(target)
                return match[0]
            if target not in self.generated and not (self.root / target).exists():
                if target in (place_of(made) for made in self.generated):
                    return match[0]
                raise FileNotFoundError(f"{source} links to {match[1]}, which is not there")
            self._waiting.append(target)
            return f"]({posixpath.relpath(place_of(target), folder or '.')}{match[2] or ''})"

        return outside_code(text, lambda prose: LINK.sub(to_page, prose))

    def write(self, folder: pathlib.Path) -> None:
        """All pages and pictures into an empty folder."""
        shutil.rmtree(folder, ignore_errors=True)
        for place, text in self.pages.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(found_by_search(place) + text)
        for picture in self.pictures:
            (folder / picture).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / picture, folder / picture)
        shutil.copytree(self.root / "docs/site/theme", folder / "theme")


def found_by_search(place: str) -> str:
    """What a page says of itself to the search: pages for users come first, texts of files not at all."""
    rank = "{exclude: true}" if place.startswith("files/") else "{boost: 3}" if place.startswith("docs/") else "{boost: 1}"
    return f"---\nsearch: {rank}\n---\n\n"


def place_of(source: str) -> str:
    """Where the page of a file or folder is in the site."""
    if source == "README.md":
        return "index.md"
    if source.startswith("docs/site/") and source.endswith(".py"):
        return f"docs/{pathlib.PurePosixPath(source).stem}.md"
    return source if source.endswith(".md") else f"files/{source}.md"


def fenced(path: pathlib.Path) -> str:
    language = "cmake" if path.name == "CMakeLists.txt" else LANGUAGES.get(path.suffix, "text")
    text = path.read_text()
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def rooms(root: pathlib.Path) -> list[tuple[str, list[pathlib.Path]]]:
    """The layers, and the READMEs of each and its rooms in the order in which they include each other."""
    found = []
    for layer, listed in tomllib.loads((root / "docs/rooms.toml").read_text()).items():
        folders = dict.fromkeys([root / layer, *(root / layer / room for room in listed)])
        found.append((layer, [path for path in dict.fromkeys(pathlib.Path(os.path.normpath(one / "README.md")) for one in folders) if path.exists()]))
    return found


def navigation(site: Site) -> list:
    """The tree of pages, as MkDocs takes it."""

    def named(place: str) -> dict[str, str]:
        return {title(site.pages[place]): place}

    internals = [{"How it works": "docs/internals.md"}]
    for layer, paths in rooms(site.root):
        internals.append({layer: [{str(path.parent.relative_to(site.root / layer)) if path.parent != site.root / layer else "overview": str(path.relative_to(site.root))} for path in paths]})
    samples = [named(place) for place in sorted(site.pages) if re.fullmatch(r"samples/[^/]+/README\.md", place)]
    return [
        {"Home": "index.md"},
        {"Using Tenon": [{"First steps": "docs/first_steps.md"}, {"Guide": "docs/python.md"}, {"Training": "docs/training.md"},
                         {"Coming from torch.compile": "docs/coming_from_torch_compile.md"}, {"NVIDIA's cards": "docs/cuda.md"}, {"Samples": samples}]},
        {"When it is odd": [{"Troubleshooting": "docs/troubleshooting.md"}, {"Performance": "docs/performance.md"}, {"Messages": "docs/messages.md"}]},
        {"Reference": [{"Python": "docs/package.md"}, {"Supported operations": "docs/ops.md"}, {"Settings and logs": "docs/settings.md"},
                       {"Graphs as text": "docs/tir.md"}, {"C": "docs/headers.md"}, {"C++ of the SDK": "docs/headers_cpp.md"}, {"Changes": "CHANGELOG.md"}]},
        {"Plugins": [{"Writing a plugin": "docs/plugins.md"}, {"The SDK": "sdk/README.md"}, {"The conformance kit": "sdk/conformance/README.md"}]},
        {"Internals": internals},
        {"Contributing": [{"Contributing": "docs/contributing.md"}, {"Benchmarks": "tests/bench/README.md"}]},
    ]  # fmt: skip
