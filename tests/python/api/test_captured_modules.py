"""What a Python backend gets of a graph of torch: a module of FX, on which backends written for torch.compile run as they stand."""
import copy
import operator
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional
X, W = torch.randn(5, 8), torch.randn(6, 8)


def gated(x, w):
    y = F.linear(x, w).relu()
    a, b = y.chunk(2, -1)
    return (a * b + 1 - x.mean()).sum(-1), y.t(), torch.add(a, b).view(-1)


def untouched(gm, example_inputs):
    return gm


def forward(gm, example_inputs):
    return gm.forward


def tidied(gm, example_inputs):
    gm.graph.eliminate_dead_code()
    gm.delete_all_unused_submodules()
    gm.graph.lint()
    gm.recompile()
    return gm


def interpreted(gm, example_inputs):
    return torch.fx.Interpreter(gm).run


def transformed(gm, example_inputs):
    return torch.fx.Transformer(gm).transform()


def with_shapes(gm, example_inputs):
    from torch.fx.passes.shape_prop import ShapeProp

    ShapeProp(gm).propagate(*example_inputs)
    described = set()
    for node in gm.graph.nodes:
        if "example_value" in node.meta and "tensor_meta" in node.meta:
            found, said = node.meta["tensor_meta"], node.meta["example_value"]
            if isinstance(said, tuple):
                continue
            described.add(node.op)
            assert (found.shape, found.dtype, found.stride) == (said.shape, said.dtype, said.stride()), node
    assert {"placeholder", "call_function"} <= described
    return gm.forward


def traced_again(gm, example_inputs):
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(gm)(*example_inputs)


def by_aot(gm, example_inputs):
    from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func

    return aot_module_simplified(gm, example_inputs, fw_compiler=lambda module, inputs: make_boxed_func(module.forward))


def in_parts(gm, example_inputs):
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Calls(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node.op in ("call_function", "call_method") and node.target is not operator.getitem

    fused = CapabilityBasedPartitioner(gm, Calls(), allows_single_node_partition=True).partition_and_fuse()
    assert any(node.op == "call_module" for node in fused.graph.nodes)
    return fused


def split(gm, example_inputs):
    from torch.fx.passes.split_module import split_module

    order = {node: at for at, node in enumerate(gm.graph.nodes)}
    return split_module(gm, gm, lambda node: order[node] // 4)


def copied(gm, example_inputs):
    for made in (copy.copy(gm), copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        for one, other in zip(made(*example_inputs), gm(*example_inputs), strict=True):
            assert torch.equal(one, other)
    return copy.deepcopy(gm)


def with_attributes(gm, example_inputs):
    gm.note = 3
    gm.register_buffer("one", torch.ones(1))
    assert gm.note == 3 and gm.graph.owning_module is gm and list(gm.buffers()) and "forward" in dir(gm) and gm.eval() is gm
    return gm


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "backend", [untouched, forward, tidied, interpreted, transformed, with_shapes, traced_again, by_aot, in_parts, split, copied, with_attributes], ids=lambda f: f.__name__
)
def test_backends_of_torch_compile(check, backend, requires_grad):
    weight, other = (W.clone().requires_grad_(requires_grad) for _ in range(2))
    compiled = tenon.compile(gated, backend=backend, fullgraph=True)
    for _ in range(2):
        got, want = compiled(X, weight), gated(X, other)
        check.same(got, want)
    if requires_grad:
        (got[0].sum() + got[2].square().sum()).backward()
        (want[0].sum() + want[2].square().sum()).backward()
        check.same(weight.grad, other.grad)


def test_the_graph_is_written_as_a_program_would_write_it(capsys):
    seen = []

    def backend(gm, example_inputs):
        gm.print_readable()
        seen.extend((node.op, node.target) for node in gm.graph.nodes)
        assert [node.meta["example_value"].shape for node in gm.graph.nodes if node.op == "placeholder"] == [one.shape for one in example_inputs]
        assert all("in gated" in node.stack_trace for node in gm.graph.nodes if node.op.startswith("call"))
        return gm.forward

    tenon.compile(gated, backend=backend)(X, W)
    for call in (("call_function", operator.mul), ("call_function", operator.add), ("call_function", torch.add), ("call_method", "relu"), ("call_method", "sum")):
        assert call in seen
    assert 'add_1: "f32[5, 3]" = torch.add' in capsys.readouterr().out


WRITTEN = [
    lambda x: x**2 + 2**x, lambda x: 2 / x - x / 2, lambda x: (5 % x, 5 // x, x % 2, x // 2), lambda x: (3 - x, -x, abs(x)), lambda x: x @ x.T,
    lambda x: (~(x > 1)) & (x < 2), lambda x: (x.split(1), x.norm(), x.pow(2)), lambda x: x.add_(1).mul_(2), lambda x: x.sub(1, alpha=2),
    lambda x: torch.stft(x.view(-1), 4, window=torch.ones(4), return_complex=True).abs(), lambda x: x * x.sum().item(), lambda x: x[x > 2] + x.shape[0],
    lambda x: torch.einsum("ij,jk->ik", x, x), lambda x: x.unique(), lambda x: torch.from_numpy(x.numpy() * 2) + 1,
]  # fmt: skip


@pytest.mark.parametrize("program", WRITTEN)
def test_operators_and_methods(check, program):
    x = torch.arange(1.0, 10).view(3, 3)
    check.same(tenon.compile(program, backend=tidied)(x.clone()), program(x.clone()))


def test_edited_nodes_run():
    def doubling(gm, example_inputs):
        output = next(node for node in gm.graph.nodes if node.op == "output")
        with gm.graph.inserting_before(output):
            twice = gm.graph.call_function(torch.mul, (output.args[0][0], 2))
        output.args = ((twice, *output.args[0][1:]),)
        gm.recompile()
        return gm.forward

    torch.testing.assert_close(tenon.compile(gated, backend=doubling)(X, W)[0], 2 * gated(X, W)[0])


def test_the_fx_graph_is_made_when_it_is_touched():
    def backend(gm, example_inputs):
        unread, graph = type(gm), gm.tenon_graph
        assert isinstance(gm, torch.fx.GraphModule) and isinstance(graph, tenon.Graph) and graph.tenon_graph is graph
        assert graph.op_names[0] == "torch.nn.functional.linear" and graph.tir().startswith("graph @gated")
        assert type(gm) is unread
        assert gm.code.count("relu") >= 1 and type(gm) is not unread and gm.tenon_graph is graph
        return graph.forward

    tenon.compile(gated, backend=backend)(X, W)


def test_graphs_of_numpy_alone_are_tenons(graphs):
    given = []

    def backend(graph, example_inputs):
        given.append(graph)
        return graph.forward

    tenon.compile(lambda a: np.sin(a) + 1, backend=backend)(np.ones(3))
    assert type(given[0]) is tenon.Graph


def test_importing_tenon_imports_no_compiler_of_torch():
    program = "import sys, torch, tenon; before = set(sys.modules); f = tenon.compile(lambda x: x + 1); f(torch.ones(3)); f(torch.ones(4)); " \
              "print([m for m in set(sys.modules) - before if m.startswith(('torch._dynamo', 'torch._inductor'))], 'torch._dynamo' in before)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split() == ["[]", "False"]


def test_what_a_graph_says_of_itself_is_there_before_and_after_it_is_a_module_of_fx():
    seen = []

    def backend(graph, inputs):
        for _ in range(2):
            seen.append((graph.op_names, graph.tir(), graph.is_backward, len(graph.to_fx().graph.nodes)))
            assert len(graph.graph.nodes) == seen[-1][3]
        return graph.forward

    x = torch.randn(4)
    torch.testing.assert_close(tenon.compile(lambda x: x.sin() + 1, backend=backend)(x), x.sin() + 1)
    assert seen[0] == seen[1] and len(seen[0][0]) == 2 and not seen[0][2]
