"""tenon.report: what the page holds, and what is refused before anything runs."""
import base64
import html.parser
import json
import os
import zlib

import numpy as np
import pytest

import tenon
from tenon._explain import _steps
from tenon._report.contents import _ptx_by_step
from tenon._report.layout import layers, positions


class Page(html.parser.HTMLParser):
    """The tags of a page with their attributes, and the text of each script."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.scripts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "input"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


def read(path):
    page = Page(path.read_text())
    assert page.open == []
    return page, json.loads(zlib.decompress(base64.b64decode(page.scripts[0])))


def two_parts(x, w):
    y = np.maximum(x @ w, 0)
    print(end="")
    return y.sum(axis=1) * 2 + 1


X, W = np.ones((96, 64)), np.full((64, 80), 0.5)  # a product that is worth a kernel of its own kind


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    found = tenon.report(two_parts, path=path)(X, W)
    return found, *read(path)


def test_a_report_says_what_explain_says_and_gives_the_result(reported):
    found, page, data = reported
    np.testing.assert_array_equal(found.explanation.result, two_parts(X, W))
    assert data["summary"]["graphs"] == found.explanation.graph_count == 2 and data["summary"]["ops"] == found.explanation.op_count
    assert data["guards"] == found.explanation.guards
    assert [s["graph"] for s in data["segments"]] == [0, 1] and [s["stop"] for s in data["segments"]] == [0, None]
    assert "print" in data["breaks"][0]["reason"] and data["breaks"][0]["stack"][-1][3] == 'print(end="")'


def test_the_page_is_one_file_that_fetches_nothing(reported):
    _, page, _ = reported
    for tag, attributes in page.tags:
        assert not {"src", "href"} & set(attributes), (tag, attributes)
    assert "fetch(" not in page.scripts[1] and "import(" not in page.scripts[1]


def test_nodes_are_drawn_below_what_they_read(reported):
    _, _, data = reported
    for graph in data["graphs"]:
        assert len(graph["nodes"]) == len(graph["reads"]) == len(graph["x"])
        for node, read_nodes in enumerate(graph["reads"]):
            assert all(graph["layer"][other] < graph["layer"][node] for other in read_nodes)
    first = data["graphs"][0]
    product = next(i for i, node in enumerate(first["nodes"]) if node["label"] == "matmul")
    assert {first["nodes"][i]["label"] for i in first["reads"][product]} == {"x", "w"}
    assert first["nodes"][product]["code"] == "y = np.maximum(x @ w, 0)"


def test_steps_have_lines_times_loops_and_code(reported):
    _, _, data = reported
    kinds = [step["kind"] for step in data["steps"]]
    assert "product" in kinds and "kernel" in kinds
    for step in data["steps"]:
        assert step["us"] > 0 and step["bytes"] > 0
        for _, _, _, file, line, _, _ in step["nodes"]:
            assert os.path.basename(file) == "test_report.py" and any(first <= line < first + len(lines) for first, lines in data["files"][file])
    kernel = next(step for step in data["steps"] if step["kind"] == "kernel")
    assert "outer o0" in kernel["loops"] and kernel["code"].startswith("define ")


def test_the_lines_of_the_program_are_there(reported):
    _, _, data = reported
    (parts,) = [parts for file, parts in data["files"].items() if file.endswith("test_report.py")]
    lines = [line for _, lines in parts for line in lines]
    assert "    y = np.maximum(x @ w, 0)" in lines and "    return y.sum(axis=1) * 2 + 1" in lines


def test_a_notebook_draws_the_page(reported):
    found, _, _ = reported
    drawn = found._repr_html_()
    assert drawn.startswith("<iframe") and "&lt;!doctype html&gt;" in drawn


def test_arguments_at_hand_and_names_that_are_markup(tmp_path):
    def shown(x):
        return x + 1

    shown.__qualname__ = "</script><b>shown"
    path = tmp_path / "page.html"
    found = tenon.report(shown, np.ones(3), path=path)
    page, data = read(path)
    assert found.path == str(path) and data["name"] == "</script><b>shown" and "b" not in [tag for tag, _ in page.tags]


@pytest.mark.parametrize("where", ["missing/page.html", "."])
def test_a_path_that_cannot_be_written_is_refused_before_anything_runs(tmp_path, where):
    ran = []

    def fn(x):
        ran.append(1)
        return x + 1

    with pytest.raises(tenon.ConfigError, match="cannot write to .*path= takes the name of a file"):
        tenon.report(fn, path=tmp_path / where)(np.ones(3))
    assert ran == [] and not (tmp_path / "missing").exists()


def test_a_call_that_raises_leaves_no_file(tmp_path):
    def fn(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tenon.report(fn, path=tmp_path / "page.html")(np.ones(3))
    assert not (tmp_path / "page.html").exists()


def test_steps_know_their_graph(reported):
    found, _, data = reported
    products = [step for step in data["steps"] if step["kind"] == "product"]
    assert {step["graph"] for step in products} == {0} and {step["graph"] for step in data["steps"]} == {0, 1}
    for step in found.explanation.steps:
        assert {node.line for node in step.nodes} <= {call[5][1] for call in found.explanation.graphs[step.graph].traced.calls}


def test_a_later_run_stands_beside_the_first(tmp_path):
    calls = []

    def counted(x):
        calls.append(1)
        return np.sin(x) * 2

    found = tenon.report(counted, path=tmp_path / "page.html", runs=3)(np.ones(50))
    _, data = read(tmp_path / "page.html")
    assert len(calls) == 3 and found.explanation.graph_count == 1
    assert [step["us"] > 0 and step["warm"] > 0 for step in data["steps"]] == [True]
    assert all(step["warm"] is None for step in read_of(tmp_path, counted)["steps"]) and len(calls) == 4


def read_of(folder, fn):
    tenon.report(fn, path=folder / "once.html")(np.ones(50))
    return read(folder / "once.html")[1]


@pytest.mark.parametrize("runs", [0, -1, 1.5, True, "2"])
def test_a_number_of_runs_that_is_none_is_refused(runs):
    with pytest.raises(tenon.ConfigError, match="runs= as a whole number from 1 on, not"):
        tenon.report(two_parts, runs=runs)


@pytest.mark.parametrize("path", [None, 5, "a\0b"])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(tenon.ConfigError, match="path= takes the name of a file"):
        tenon.report(two_parts, path=path)(X, W)


PTX = """.version 8.6
.target sm_90
.visible .entry kernel_a0(
\t.param .u64 p0
)
{
\tret;
}
.visible .entry kernel_b1(
\t.param .u64 p0
)
{
\tadd.f32 %f1, %f2, %f3;
}
"""


def test_the_code_of_a_card_is_that_of_its_step():
    """What the plugin cuda says (tests/unit/cuda_run/steps_test.cpp), without one."""
    outline = [json.dumps({"program": 1, "step": step, "kind": "kernel", "name": "add", "nodes": [{"op": "add"}], "loops": "kernel", "kernel": kernel}) for step, kernel in enumerate(["kernel_a0", "kernel_b1", "kernel_b1"])]
    host = json.dumps({"program": 1, "step": 0, "kind": "kernel", "name": "sin", "nodes": [{"op": "sin"}]})
    lines = [("steps", "", '{"graph":0}'), ("steps", "llvm", host), ("steps", "", '{"graph":1}'), *(("steps", "cuda", line) for line in outline), ("kernel_code", "cuda", PTX)]
    code = _ptx_by_step(lines)
    assert sorted(code) == [(2, 0), (2, 1), (2, 2)] and code[2, 2] == code[2, 1] and "add.f32" in code[2, 1] and "add.f32" not in code[2, 0]
    assert [(step.program, step.graph, step.step) for step in _steps(lines)] == [(1, 0, 0), (2, 1, 0), (2, 1, 1), (2, 1, 2)]


def test_options_are_checked_by_name():
    with pytest.raises(TypeError, match=r"report\(\) got an unexpected keyword argument 'bakend'"):
        tenon.report(two_parts, bakend="llvm")


def test_a_profile_tells_steps_and_writes_nothing(capfd):
    explained = tenon.explain(two_parts, profile=True)(X, W)
    assert capfd.readouterr().err == ""
    assert {step.kind for step in explained.steps} >= {"product", "kernel"} and all(step.microseconds > 0 for step in explained.steps)
    assert " us  product " in str(explained)
    assert tenon.explain(two_parts)(X, W).steps == []


def test_logs_that_are_on_are_still_written(capfd):
    tenon.set_logs(kernel_times=True)
    try:
        explained = tenon.explain(lambda x: x * 3 - 1, profile=True)(np.ones(7))
    finally:
        tenon.set_logs()
    assert len(explained.steps) == 1 and capfd.readouterr().err.count('"flops"') == 1


def test_layers_and_positions():
    reads = [[], [], [0], [2], [1, 3], []]
    assert layers(reads) == [0, 2, 1, 2, 3, 0]
    places = positions(reads)
    assert [layer for _, layer in places] == layers(reads) and len(set(places)) == len(reads)
    assert positions([]) == []
