"""Running, verifying and rewriting graphs from files."""
from __future__ import annotations

import json
import numpy as np
import pytest

SYMBOLIC = """graph @main [s0: 1..1024] (%x: f32[s0, 4], %w: f32[4]) {
  %y: f32[s0, 4] = mul(%x, %w)
  %z: f32[s0] = sum(%y) {dim = [1], keepdim = false}
  return %z, %y
}
"""


@pytest.fixture
def graph(tenon_command):
    (tenon_command.folder / "g.tir").write_text(SYMBOLIC)
    return tenon_command


@pytest.mark.parametrize("order", ["C", "F"])
def test_run_on_files(graph, order):
    x = np.asarray(np.random.default_rng(1).standard_normal((7, 4)), dtype=np.float32, order=order)
    w = np.arange(4, dtype=np.float32)
    np.save(graph.folder / "x.npy", x)
    np.save(graph.folder / "w.npy", w)
    result = graph("run", "g.tir", "--backend", "reference", "--input", "x=x.npy", "--input", "w=w.npy", "--output", "z=z.npy", "--output", "y=y.npy")
    assert result.status == 0, result.err
    np.testing.assert_allclose(np.load(graph.folder / "y.npy"), x * w, rtol=1e-6)
    np.testing.assert_allclose(np.load(graph.folder / "z.npy"), (x * w).sum(1), rtol=1e-5, atol=1e-6)


def test_run_on_random_input(graph):
    first = graph("run", "g.tir", "--backend", "reference", "--size", "s0=5", "--json")
    assert first.status == 0, first.err
    outputs = first.json["outputs"]
    assert [(o["name"], o["dtype"], o["shape"]) for o in outputs] == [("z", "f32", [5]), ("y", "f32", [5, 4])]
    again = graph("run", "g.tir", "--backend", "reference", "--size", "s0=5", "--json").json["outputs"]
    other = graph("run", "g.tir", "--backend", "reference", "--size", "s0=5", "--seed", 2, "--json").json["outputs"]
    assert again == outputs and other != outputs
    assert "z" in graph("run", "g.tir", "--backend", "reference", "--size", "s0=5").out


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "--size s0=NUMBER"),
        (("--size", "s1=3"), "no symbol 's1'; did you mean 's0'?"),
        (("--size", "s0=three"), "--size"),
        (("--size", "s0"), "NAME=VALUE"),
        (("--size", "s0=3", "--input", "v=v.npy"), "no input 'v'"),
        (("--size", "s0=3", "--input", "x=nowhere.npy"), "cannot read nowhere.npy"),
        (("--size", "s0=3", "--output", "q=q.npy"), "no output 'q'"),
        (("--size", "s0=3", "--backend", "refrence"), "did you mean 'reference'?"),
    ],
)
def test_wrong_run(graph, arguments, said):
    result = graph("run", "g.tir", *arguments)
    assert result.status == 2, result.out
    assert said in result.err


def test_input_that_does_not_fit(graph):
    np.save(graph.folder / "x.npy", np.zeros((3, 5), dtype=np.float32))
    result = graph("run", "g.tir", "--input", "x=x.npy", "--backend", "reference")
    assert result.status == 1 and "x" in result.err
    (graph.folder / "x.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\x00{")
    result = graph("run", "g.tir", "--input", "x=x.npy", "--backend", "reference")
    assert result.status == 1 and "x.npy: the .npy file is damaged" in result.err


def test_update_of_an_input(tenon_command):
    (tenon_command.folder / "g.tir").write_text("graph @main (%x: f64[3]) {\n  %y: f64[3] = add(%x, 1)\n  return update %x = %y\n}\n")
    np.save(tenon_command.folder / "x.npy", np.arange(3.0))
    result = tenon_command("run", "g.tir", "--backend", "reference", "--input", "x=x.npy", "--output", "x=new.npy")
    assert result.status == 0, result.err
    assert np.load(tenon_command.folder / "new.npy").tolist() == [1, 2, 3]


def test_verify(graph):
    result = graph("verify", "g.tir")
    assert result.status == 0 and "2 nodes" in result.out
    (graph.folder / "bad.tir").write_text(SYMBOLIC.replace("mul(%x, %w)", "mul(%x, %nowhere)"))
    result = graph("verify", "bad.tir")
    assert result.status == 1 and "line 2" in result.err and "nowhere" in result.err
    result = graph("verify", "bad.tir", "--json")
    assert result.status == 1 and result.json["valid"] is False and "line 2" in result.json["errors"][0]
    (graph.folder / "g.unknown").write_text("")
    result = graph("verify", "g.unknown")
    assert result.status == 2 and ".tir" in result.err


def test_ops(tenon_command):
    names = [op["name"] for op in tenon_command("ops", "list", "--json").json]
    assert {"add", "sum", "reshape"} <= set(names)
    shown = tenon_command("ops", "show", "silu", "--json").json
    assert shown["name"] == "silu" and "Tensor" in shown["schema"]
    assert tenon_command("ops", "show", "torch.nn.functional.silu", "--json").json == shown


@pytest.mark.parametrize("device, op", [("", "convolution"), (" on device9:0", "convolution_channels_last")])
def test_only_pictures_of_devices_are_laid_out_by_a_pass(tenon_command, device, op):
    text = f"graph @main (%x: f32[2, 3, 8, 8]{device}, %w: f32[128, 3, 3, 3]{device}) {{\n  %y: f32[2, 128, 6, 6]{device} = convolution(%x, %w)\n  %z: f32[2, 128, 6, 6]{device} = relu(%y)\n  return %z\n}}\n"
    (tenon_command.folder / "g.tir").write_text(text)
    done = tenon_command("passes", "run", "channels_last", "g.tir")
    assert done.status == 0 and f" = {op}(" in done.out, done.err


def test_a_run_of_a_graph_is_traced(tenon_command):
    (tenon_command.folder / "g.tir").write_text("graph @main (%x: f32[3]) {\n  %y: f32[3] = add(%x, 1)\n  return %y\n}\n")
    done = tenon_command("run", "g.tir", TENON_TRACE="trace.json")
    assert done.status == 0, done.err
    names = {event["name"] for event in json.loads((tenon_command.folder / "trace.json").read_text())}
    assert {"compile", "add"} <= names
