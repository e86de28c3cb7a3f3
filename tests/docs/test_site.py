"""The pages of the site: all links and anchors lead somewhere, and what is generated says what its sources say. MkDocs is the stage `docs`."""
import ast
import logging
import pathlib
import posixpath
import random
import re
import threading
import weakref

import numpy
import pytest

import tenon
from docs.site import cpp_text, headers, headers_cpp, messages, ops, package, settings
from docs.site.markdown import anchors, links, slug, with_lists
from docs.site.pages import Site, navigation

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(request):
    return Site(ROOT, request.getfixturevalue("build"))


def places(tree) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    return [place for one in (tree.values() if isinstance(tree, dict) else tree) for place in places(one)]


def test_links_and_anchors_lead_somewhere(site):
    found = {place: anchors(text) for place, text in site.pages.items()}
    wrong = []
    for place, text in site.pages.items():
        for target, anchor in links(text):
            to = posixpath.normpath(posixpath.join(posixpath.dirname(place), target)) if target else place
            if to not in found and to not in site.pictures or anchor and anchor not in found.get(to, ()):
                wrong.append(f"{place}: {target}#{anchor}")
    assert wrong == [] and len(site.pages) > 100


def test_navigation_names_pages_that_are_there(site):
    listed = places(navigation(site))
    assert set(listed) <= set(site.pages) and len(listed) == len(set(listed))
    written = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert written <= set(listed), "a page of docs/ that the navigation does not show"


def test_every_reason_of_a_break_is_on_the_page_of_messages(site):
    page = site.pages["docs/messages.md"]
    text = "".join(path.read_text() for path in (ROOT / messages.FRONTEND).rglob("*.cpp"))
    plain = set(re.findall(r'throw GraphBreak\("((?:[^"\\{]|\\.)*)"', text))
    assert len(plain) > 150
    assert [reason for reason in plain if reason.replace('\\"', '"').replace("|", "\\|") not in page] == []
    hints = messages.constants((ROOT / messages.FRONTEND / "objects/hints.h").read_text()).values()
    assert len(hints) > 20 and [hint for hint in hints if hint[1:] not in page] == []


def is_worded_as(text: str, wording: str) -> bool:
    """Whether a message is one of a wording that has words enough of its own to be told by them."""
    own = [re.escape(part) for part in wording.split("…")]
    return sum(map(len, own)) > 10 and re.fullmatch(".*".join(own), text, re.S) is not None


def printing(a):
    print(a.shape)
    return a + 1


def branching(a):
    return a + 1 if a.sum() > 0 else a - 1


def drawing(a):
    return a * random.random()


def weakly_held(a):
    return weakref.ref(threading.Lock)() and a + weakref.getweakrefcount(a)


def logged(a):
    logging.getLogger("a program").warning("said")
    return a + 1


def of_another_dtype(a):
    return a + numpy.array(["x"], dtype=object).size


@pytest.mark.parametrize("program", [printing, branching, drawing, weakly_held, logged, of_another_dtype], ids=lambda program: program.__name__)
def test_what_a_break_says_is_on_the_page(site, program):
    listed = messages.breaks(ROOT)
    reasons = tenon.explain(program)(numpy.ones(3)).break_reasons
    assert reasons
    for reason in reasons:
        assert any(is_worded_as(reason.reason, message.text) and message.hint in (reason.hint, messages.ADVICE) for message in listed), reason
        assert reason.hint.replace("|", "\\|")[1:] in site.pages["docs/messages.md"]


@pytest.mark.parametrize("options", [{"mode": "quick"}, {"backend": 3}, {"options": {"freezes": True}}, {"in_place": True}], ids=str)
def test_what_is_refused_is_on_the_page(options):
    with pytest.raises(tenon.ConfigError) as refusal:
        tenon.compile(printing, **options)
    assert any(is_worded_as(str(refusal.value), message.text) for message in messages.refused(ROOT)), refusal.value


def test_what_is_said_unasked_is_on_the_page(caplog):
    compiled = tenon.compile(lambda a, b: a + b["key"], options={"recompile_limit": 1}, dynamic=False)
    for n in range(4):
        compiled(numpy.ones(n + 1), {"key": n})
    assert caplog.messages
    for said in caplog.messages:
        assert any(is_worded_as(said.removeprefix("tenon: "), message.text) for message in messages.unasked(ROOT)), said


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ('"plain"', ["plain"]), ('fmt::format("a {} of {:.2f}", x, y)', ["a … of …"]), ('"one " + name + " end"', ["one … end"]),
        ('known ? "this one" : "that; one"', ["this one", "that; one"]), ("reason", []), ('"two " "parts"', ["two parts"]), ('std::string("a text") + b', ["a text…"]),
        ('fmt::format("of {}", ok ? "a" : "b")', ["of …"]), ('"with \\"quotes\\""', ['with "quotes"']),
    ],
)  # fmt: skip
def test_wordings_of_expressions(expression, said):
    assert cpp_text.wordings(expression) == said


def test_the_reference_of_python_is_whole(site):
    page = site.pages["docs/package.md"]
    for name in tenon.__all__:
        entry = page.split(f"### tenon.{name}\n")[1].split("\n##")[0]
        assert re.search(r"```\n\n\w.{15}", entry), name
    for parameter in tenon.compile.__kwdefaults__:
        assert f"`{parameter}`\n:   " in page, parameter
    for definition in package.public(ROOT).values():
        assert all(ast.get_docstring(one) for one in definition[-1:])


@pytest.mark.parametrize(("module", "page"), [(headers, "docs/headers.md"), (headers_cpp, "docs/headers_cpp.md")])
def test_the_reference_of_headers_is_whole(site, module, page):
    text = site.pages[page]
    functions = {name for header in module.HEADERS for name in re.findall(r"^TENON_API .*?\b(tenon_\w+)\(", (ROOT / header).read_text(), re.M)}
    types = {name for header in module.HEADERS for name in re.findall(r"^(?:typedef struct|class|struct) (\w+) ?(?::[^;]*)?\{", re.sub(r"namespace detail \{.*?\n\}", "", (ROOT / header).read_text(), flags=re.S), re.M)}
    blocks = "\n".join(re.findall(r"```cpp\n(.*?)```", text, re.S))
    assert [name for name in sorted(functions | types) if not re.search(rf"\b{name}\b", blocks)] == []
    assert " private:" not in text and "#ifdef" not in text


def test_supported_operations_are_those_of_the_catalogue(site, build):
    page = site.pages["docs/ops.md"]
    catalogue = ops.catalogue(build)
    assert len(catalogue) > 200 and all(f"\n| `{op['name']}` |" in page for op in catalogue)
    for table in ("tests/opinfo/table.md", "tests/array_api/table.md"):
        counted = re.search(r"samples: (\d+) native, (\d+) opaque, (\d+) refused, (\d+) wrong", (ROOT / table).read_text())
        assert "{} native, {} opaque, {} refused, {} wrong".format(*counted.groups()) in page
    assert {"sorted", "dict.fromkeys"} <= set(ops.followed(ROOT)["builtins"]) and "`groupby`" in page
    assert "| `torch.nn.functional.softmax` |" in page and "| `numpy.sqrt` |" in page


def test_settings_and_logs_are_those_of_the_command(site, build):
    page = site.pages["docs/settings.md"]
    named = {name for name, _ in settings.logs(build)}
    assert {"graph_breaks", "kernel_code", "recompiles"} <= named and all(f"| `{name}` |" in page for name in named)
    assert "`TENON_CACHE_DIR`" in page and re.search(r'^\| `compile\.backends` \|.*`\["llvm"\]`', page, re.M)


def test_anchors_and_lists_are_those_of_the_site():
    assert slug("What `explain` says, and why") == "what-explain-says-and-why"
    assert anchors("# A\n\n## Devices\n\n```sh\n# no heading\n```\n\n## Devices\n") == {"a", "devices", "devices-1"}
    assert with_lists("text\n- one\n- two\n") == "text\n\n- one\n- two\n"
    assert with_lists("```\ntext\n- one\n```\n") == "```\ntext\n- one\n```\n"
