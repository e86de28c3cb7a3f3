"""A report as a browser shows it: every view draws, graphs are panned, zoomed and searched, and a step opens to its code."""
import pathlib

import pytest

import tenon
from tests.browser import chromium

torch = pytest.importorskip("torch")

SCREENSHOTS = pathlib.Path(__file__).parents[2] / "build" / "screenshots"
VIEWS = ("Flow", "Source", "Graphs", "Kernels", "Memory", "Guards", "Compiling")

OPEN = """const open = (label) => [...document.querySelectorAll("nav button")].find((b) => b.textContent === label).click();
const shown = () => document.querySelector("section.on");
const move = () => document.querySelector("#canvas > g").getAttribute("transform").match(/-?\\d+(\\.\\d+)?(e-?\\d+)?/g).map(Number);
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 10))

    def step(x):
        y = net(x)
        print(end="")  # a break
        return torch.softmax(y, -1).topk(3)

    path = tmp_path_factory.mktemp("browser") / "page.html"
    with torch.no_grad():
        tenon.report(step, path=path, runs=2)(torch.randn(2, 3, 16, 16))
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_draws_and_is_pictured(page, view):
    said = chromium.answer(page, OPEN + f'open("{view}"); return {{ characters: shown().innerText.length, wide: document.documentElement.scrollWidth > innerWidth }};')
    assert said["characters"] > 60 and not said["wide"]
    picture = SCREENSHOTS / f"report-{view.lower()}.png"
    picture.unlink(missing_ok=True)
    chromium.picture(page, OPEN + f'open("{view}");', picture)
    assert picture.stat().st_size > 5_000


def test_a_graph_is_panned_and_zoomed(page):
    said = chromium.answer(
        page,
        OPEN
        + """open("Graphs");
const canvas = document.querySelector("#canvas"), before = move();
canvas.dispatchEvent(new PointerEvent("pointerdown", { clientX: 300, clientY: 300, bubbles: true }));
dispatchEvent(new PointerEvent("pointermove", { clientX: 340, clientY: 270 }));
dispatchEvent(new PointerEvent("pointerup", {}));
dispatchEvent(new PointerEvent("pointermove", { clientX: 900, clientY: 900 }));
const panned = move();
canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -250, clientX: 300, clientY: 300, cancelable: true }));
return { before, panned, zoomed: move() };""",
    )
    before, panned, zoomed = said["before"], said["panned"], said["zoomed"]
    assert [round(panned[0] - before[0]), round(panned[1] - before[1])] == [40, -30] and panned[2] == before[2]
    assert zoomed[2] == pytest.approx(before[2] * 1.6487, rel=1e-3)


def test_a_search_finds_nodes_and_goes_there(page):
    said = chromium.answer(
        page,
        OPEN
        + """open("Graphs");
const search = shown().querySelector("input"), before = move();
search.value = "relu"; search.dispatchEvent(new Event("input"));
const found = document.querySelectorAll("#canvas g.found").length, hits = shown().querySelector(".tools span").textContent;
document.querySelector("#canvas g.found").dispatchEvent(new MouseEvent("click", { bubbles: true }));
const about = shown().querySelector("pre").textContent;
search.value = "no such node"; search.dispatchEvent(new Event("input"));
return { found, hits, about, none: document.querySelectorAll("#canvas g.found").length, moved: String(move()) !== String(before) };""",
    )
    assert said["found"] == 1 and said["hits"] == "1 found" and said["none"] == 0 and said["moved"]
    assert "relu" in said["about"] and "activation.py" in said["about"]


def test_another_graph_is_chosen(page):
    said = chromium.answer(
        page,
        OPEN
        + """open("Graphs");
const pick = shown().querySelector("select"), first = document.querySelectorAll("#canvas g g").length;
pick.value = "1"; pick.dispatchEvent(new Event("change"));
return { graphs: pick.options.length, labels: [...document.querySelectorAll("#canvas g g text")].map((t) => t.textContent), first };""",
    )
    assert said["graphs"] == 2 and "softmax" in said["labels"] and said["first"] != len(said["labels"])


def test_a_step_opens_to_its_nodes_and_code(page):
    said = chromium.answer(
        page,
        OPEN
        + """open("Kernels");
const rows = [...shown().querySelectorAll("tr.row")], heads = [...shown().querySelectorAll("th")].map((h) => h.textContent);
rows.forEach((row) => row.click());
return { heads, rows: rows.map((r) => [...r.cells].map((c) => c.innerText.trim())), text: shown().innerText, code: [...shown().querySelectorAll("details pre")].map((p) => p.textContent.slice(0, 40)) };""",
    )
    assert said["heads"][:4] == ["step", "graph", "time", "first run"]
    assert {row[1] for row in said["rows"]} == {"1", "2"} and all("us" in row[2] or "ms" in row[2] for row in said["rows"])
    assert any(text.startswith("define ") for text in said["code"]) and "softmax" in said["text"]


def test_a_large_graph_is_drawn(tmp_path):
    def long(x):
        for i in range(1500):
            x = (x + i).abs()
        return x

    path = tmp_path / "long.html"
    tenon.report(long, path=path)(torch.ones(3))
    said = chromium.answer(path, OPEN + 'open("Graphs"); return document.querySelectorAll("#canvas g g").length;')
    assert said == 3002 and path.stat().st_size < 10_000_000
