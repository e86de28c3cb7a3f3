"""Logs, graphs as text, explain, graph breaks. NumPy only."""
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import tenon
from tests.python.conftest import of_many_kernels

A = np.arange(6.0).reshape(2, 3)


def wave(a, b):
    c = np.sin(a)
    d = np.cos(b)
    return c + d


def branch(a):
    b = a * 2
    if b.sum() > 0:
        return b
    return -b


def test_graph_code_log(capfd):
    tenon.set_logs(graph_code=True)
    tenon.compile(wave)(A, A + 1)
    text = capfd.readouterr().err
    for part in ("TRACED GRAPH", "numpy.sin", "f64[2, 3]", "c = np.sin(a)", "test_seeing.py"):
        assert part in text, text


def test_graph_as_table(capsys):
    def backend(graph, example_inputs):
        graph.print_tabular()
        return graph.forward

    tenon.compile(wave, backend=backend)(A, A + 1)
    text = capsys.readouterr().out
    for word in ("opcode", "name", "target", "args", "kwargs", "placeholder", "call_function", "output", "numpy.sin"):
        assert word in text


def test_graph_as_text_form(graphs):
    tenon.compile(wave, backend=graphs)(A, A + 1)
    (graph,) = graphs.seen
    text = graph.tir()
    assert text.startswith("graph @wave") and "sin(%a)" in text and "%b: f64[2, 3]" in text


def test_a_report_costs_less_than_three_compiles():
    """By processor time; as text, too. It is 1.2 compiles."""
    def seconds(action):
        start = time.process_time()
        action()
        return time.process_time() - start

    tenon.compile(of_many_kernels(40, 0))(A)
    compiling = min(seconds(lambda serial=serial: tenon.compile(of_many_kernels(40, serial))(A)) for serial in range(1, 4))
    explaining = min(seconds(lambda serial=serial: str(tenon.explain(of_many_kernels(40, serial))(A))) for serial in range(4, 7))
    assert explaining < 3 * compiling


def test_every_log_has_its_switch():
    import inspect

    parameters = [name for name, parameter in inspect.signature(tenon.set_logs).parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    tenon.set_logs(**{name: True for name in parameters})
    with pytest.raises(Exception, match="unknown log 'no_such_log'.*") as refusal:
        tenon._tenon.set_logs("no_such_log")
    known = str(refusal.value).split("known: ")[1].split(", ")
    assert {*known, "help"} == set(parameters)
    tenon.set_logs()


def test_explain_takes_what_the_function_was_compiled_with():
    compiled = tenon.compile(wave, backend="reference")
    assert set(tenon.explain(compiled)(A, A).nodes_by_backend) == {"reference"}
    assert set(tenon.explain(compiled, backend="llvm")(A, A).nodes_by_backend) == {"llvm"}
    assert set(tenon.explain(wave)(A, A).nodes_by_backend) == {"llvm"}
    seen = []

    def backend(graph, inputs):
        seen.append(graph)
        return graph.forward

    tenon.explain(tenon.compile(wave, backend=backend))(A, A)
    assert len(seen) == 1

    class Holder:
        @tenon.compile(backend="reference")
        def wave(self, a):
            return np.sin(a) + 1

    report = tenon.explain(Holder().wave)(A)
    assert set(report.nodes_by_backend) == {"reference"} and report.graph_count == 1
    with pytest.raises(TypeError, match="unexpected keyword argument 'backends'"):
        tenon.explain(wave, backends="llvm")


def test_the_whole_stack_of_a_break_is_told(capfd):
    def inner(a):
        print(end="")
        return a + 1

    def middle(a):
        return inner(a) * 2

    def outer(a):
        return middle(a) - 1

    (reason,) = tenon.explain(outer)(A).break_reasons
    assert [frame.name for frame in reason.user_stack] == ["outer", "middle", "inner"]
    tenon.set_logs(graph_breaks=True)
    tenon.compile(outer)(A)
    with pytest.raises(tenon.GraphBreakError) as failure:
        tenon.compile(outer, fullgraph=True)(A)
    for text in (str(reason), capfd.readouterr().err, str(failure.value)):
        places = [text.index(f"in {name}\n") for name in ("outer", "middle", "inner")]
        assert places == sorted(places)
        for line in ("return middle(a) - 1", "return inner(a) * 2", 'print(end="")'):
            assert line in text


def test_errors_are_named_where_users_find_them():
    for error in (tenon.Error, tenon.GraphBreakError, tenon.CompileError, tenon.PluginError, tenon.ConfigError):
        assert error.__module__ == "tenon" and getattr(tenon, error.__qualname__) is error


def test_explain():
    report = tenon.explain(wave)(A, A + 1)
    assert (report.graph_count, report.graph_break_count, report.op_count) == (1, 0, 3)
    assert report.ops_per_graph == [["numpy.sin", "numpy.cos", "numpy.add"]]
    assert report.guards and set(report.compile_times) == {"capture", "compile"}
    np.testing.assert_allclose(report.result, wave(A, A + 1))
    assert sum(report.nodes_by_backend.values()) >= 3
    assert 48 <= report.peak_bytes <= report.unfused_peak_bytes == 144
    for part in ("Graph Count: 1", "Op Count: 3", "Guards", "Compile", "Nodes: ", "Peak memory: "):
        assert part in str(report)


def test_a_break_is_counted_logged_and_right(capfd):
    tenon.set_logs(graph_breaks=True)
    compiled = tenon.compile(branch)
    for a in (A, -A, A):
        np.testing.assert_allclose(compiled(a), branch(a))
    text = capfd.readouterr().err
    assert "if b.sum() > 0:" in text and "branch" in text
    assert tenon.stats()["graph_breaks"] > 0


def test_the_first_break_of_a_process_is_logged(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import tenon\ntenon.compile(lambda: tenon.graph_break())()\n")
    done = subprocess.run([sys.executable, str(program)], env={**os.environ, "TENON_LOGS": "graph_breaks"}, capture_output=True, text=True)
    assert done.returncode == 0 and "tenon.graph_break() is called" in done.stderr, done.stderr


def test_fullgraph_names_the_line_and_says_what_to_do():
    with pytest.raises(tenon.GraphBreakError) as error:
        tenon.compile(branch, fullgraph=True)(A)
    text = str(error.value)
    assert "if b.sum() > 0:" in text and __file__ in text and str(branch.__code__.co_firstlineno + 2) in text


def test_an_unknown_log_is_refused():
    from tenon import _tenon

    with pytest.raises(tenon.ConfigError, match="graph_cod"):
        _tenon.set_logs("graph_cod")


def test_the_stub_names_what_the_module_has():
    import ast
    import pathlib

    from tenon import _tenon

    stub = ast.parse((pathlib.Path(tenon.__file__).parent / "_tenon.pyi").read_text())
    named = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert named == {name for name in dir(_tenon) if not name.startswith("__")}


def test_kernel_times_say_what_each_step_needs(capfd):
    compiled = tenon.compile(lambda x, w: np.maximum(x @ w, 0) + 1)
    random = np.random.default_rng(0)
    x, w = random.standard_normal((64, 32)), random.standard_normal((32, 48))
    tenon.set_logs(kernel_times=True)
    try:
        np.testing.assert_allclose(compiled(x, w), np.maximum(x @ w, 0) + 1)
    finally:
        tenon.set_logs()
    steps = [json.loads(line[line.index("{"):]) for line in capfd.readouterr().err.splitlines() if '"flops"' in line]
    products = [step for step in steps if step["kind"] == "product"]
    assert len(products) == 1 and products[0]["flops"] == 2 * 64 * 32 * 48
    assert products[0]["bytes"] == 8 * (64 * 32 + 32 * 48 + 64 * 48) and products[0]["us"] > 0


def test_numbers_made_of_elements_are_shown():
    text = str(tenon.explain(lambda x: float(x[2]) * 2)(np.arange(3.0)))
    assert 'number_1: "float" = operator.mul(number, 2)' in text
