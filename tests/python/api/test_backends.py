"""Backends by name, by list and as Python functions. NumPy only."""
import numpy as np
import pytest

import tenon

A, B = np.arange(6.0).reshape(2, 3), np.ones((2, 3))


def wave(a, b):
    c = np.sin(a)
    return c + np.cos(b)


@pytest.mark.parametrize("backend", ["llvm", "reference", ["reference"], ["llvm", "reference"]])
def test_backends_by_name(backend):
    got = tenon.compile(wave, backend=backend)(A, B)
    np.testing.assert_allclose(got, wave(A, B))
    stats = tenon.stats()
    assert stats["eager_fallbacks"] == 0
    first = backend if isinstance(backend, str) else backend[0]
    assert stats["backends"][first]["nodes"] > 0


def test_an_unknown_backend_names_the_nearest():
    with pytest.raises(tenon.ConfigError, match="'lvm'.*llvm"):
        tenon.compile(wave, backend="lvm")(A, B)


def test_a_python_backend_gets_the_captured_graph():
    seen = []

    def backend(graph, example_inputs):
        seen.append((graph.op_names, example_inputs))
        return graph.forward

    np.testing.assert_allclose(tenon.compile(wave, backend=backend)(A, B), wave(A, B))
    ((names, inputs),) = seen
    assert names == ["numpy.sin", "numpy.cos", "numpy.add"]
    assert inputs[0] is A and inputs[1] is B


def test_a_python_backend_replaces_the_computation():
    def backend(graph, example_inputs):
        return lambda a, b: (a - b,)

    np.testing.assert_allclose(tenon.compile(wave, backend=backend)(A, B), A - B)


def test_a_python_backend_that_fails_is_named():
    def broken(graph, example_inputs):
        raise ValueError("no such luck")

    with pytest.raises(tenon.CompileError, match="'broken' failed to compile wave: ValueError: no such luck") as error:
        tenon.compile(wave, backend=broken)(A, B)
    assert isinstance(error.value.__cause__, ValueError)


def test_a_python_backend_must_give_a_callable_and_all_results():
    for given, said in ((3, "int"), (None, "None")):
        with pytest.raises(tenon.CompileError, match=f"<lambda>.*: TypeError: it gave {said}, not a callable; to run the graph as it is, give its forward"):
            tenon.compile(wave, backend=lambda graph, inputs: given)(A, B)
        with pytest.raises(tenon.CompileError, match=f"it gave {said}"):
            tenon.explain(wave, backend=lambda graph, inputs: given)(A, B)
    with pytest.raises(tenon.CompileError, match="2 results instead of 1"):
        tenon.compile(wave, backend=lambda graph, inputs: lambda a, b: (a, b))(A, B)


def test_registered_backends():
    tenon.register_backend("mine", lambda graph, inputs: graph.forward)
    assert "mine" in tenon.backends()
    np.testing.assert_allclose(tenon.compile(wave, backend="mine")(A, B), wave(A, B))


def test_plugins_say_where_they_are():
    found = {plugin["name"]: plugin for plugin in tenon.plugins() if plugin["source"] != "process"}
    assert {"llvm", "reference", "python"} <= set(found)
    assert found["python"]["kind"] == "frontend"
