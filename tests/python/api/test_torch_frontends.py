"""Two roads between Tenon and torch's own compiler: our graphs on their backends, their graphs on ours."""
import copy

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional


def pointwise(x, y):
    return torch.sin(x) + torch.cos(y) * 2


def shapes(x, y):
    a, b = x.chunk(2, 1)
    return torch.cat([a, b], 0).t(), x.T @ y, x[0, 1:], -x, 2 - x, x.shape[0] * y


@pytest.mark.parametrize("fn", [pointwise, shapes])
@pytest.mark.parametrize("name", ["eager", "aot_eager"])
def test_our_graphs_on_their_backends(check, fn, name):
    from torch._dynamo.backends.registry import lookup_backend

    c, args = tenon.compile(fn, backend=lookup_backend(name), fullgraph=True), (torch.randn(4, 4), torch.randn(4, 4))
    with torch.no_grad():
        for _ in range(2):
            check.same(c(*args), fn(*args))


def test_inductor_compiles_our_graphs(check):
    from torch._inductor import compile as inductor

    c, args = tenon.compile(pointwise, backend=inductor, fullgraph=True), (torch.randn(4, 4), torch.randn(4, 4))
    with torch.no_grad():
        for _ in range(2):
            check.same(c(*args), pointwise(*args))


def of_both_libraries(x, a):
    import numpy as np

    y = torch.sin(x) * 2
    b = np.tanh(y.numpy()) + np.cos(a)
    return torch.from_numpy(b).add_(x).exp(), b, np.sqrt(a)


@pytest.mark.parametrize("name", ["eager", "aot_eager", "inductor"])
def test_their_backends_get_the_calls_of_torch_in_graphs_of_both_libraries(check, name, caplog):
    import numpy as np
    from torch._dynamo.backends.registry import lookup_backend

    c, args = tenon.compile(of_both_libraries, backend=lookup_backend(name)), (torch.randn(4), np.random.rand(4).astype("f4"))
    with torch.no_grad():
        for _ in range(3):
            check.same(c(*args), of_both_libraries(*args))
    assert tenon.stats()["graph_breaks"] == 0 and ("does not take" in caplog.text) <= (name != "eager")


def test_a_backend_that_fails_by_itself_is_named_also_where_numpy_is_called():
    import numpy as np

    def failing(graph, example_inputs):
        raise ValueError("no")

    with pytest.raises(tenon.CompileError):
        tenon.compile(of_both_libraries, backend=failing)(torch.randn(4), np.ones(4, "f4"))


def test_a_module_as_fx(check, graphs):
    net, x = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.LayerNorm(4), torch.nn.Softmax(-1)).eval(), torch.randn(3, 8)
    c = tenon.compile(net, backend=graphs)
    with torch.no_grad():
        want = c(x)
        (graph,) = graphs.seen
        module = graph.to_fx()
        assert isinstance(module, torch.fx.GraphModule)
        inputs = {id(p): p for p in net.parameters()} | {id(x): x}
        module.graph.lint()
        assert len(module.graph.find_nodes(op="placeholder")) == len(inputs)
        assert "linear" in module.code and "softmax" in module.code
        check.same(want, net(x))


def compiled_by_torch(fn, **options):
    torch._dynamo.reset()
    return torch.compile(fn, backend="tenon", **options)


def test_their_graphs_on_our_backends(check):
    def fn(x, y):
        a = torch.sin(x)
        if a.sum() > 0:
            return a + y
        return a - y

    assert "tenon" in torch.compiler.list_backends()
    c, x, y = compiled_by_torch(fn), torch.rand(3, 3), torch.randn(3, 3)
    for _ in range(2):
        check.same(c(x, y), fn(x, y))
        check.same(c(-x, y), fn(-x, y))
    stats = tenon.stats()
    assert stats["graphs"] == 3 and stats["eager_fallbacks"] == 0


def test_their_modules_on_our_backends(check):
    net, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)), torch.randn(5, 8)
    twin = copy.deepcopy(net)
    c = compiled_by_torch(net)
    with torch.no_grad():
        for _ in range(2):
            check.same(c(x), net(x))
        assert tenon.stats()["graphs"] == 1
    c(x).square().sum().backward()
    twin(x).square().sum().backward()
    for p, q in zip(net.parameters(), twin.parameters()):
        check.same(p.grad, q.grad)


def test_options_of_torch_compile_reach_us(check):
    x = torch.randn(4)
    c = compiled_by_torch(lambda x: x.exp() + 1, options={"backend": "reference"})
    check.same(c(x), x.exp() + 1)
    assert tenon.stats()["backends"]["reference"]["nodes"] == 2
    for options, words in (({"backend": "lvm"}, "llvm"), ({"nope": 1}, "recompile_limit"), ({"backend": "tenon"}, "names a backend of Tenon")):
        with pytest.raises(Exception, match=words):
            compiled_by_torch(lambda x: x.exp() + 1, options=options)(x)


def test_constant_tensors_and_arrays_are_attributes_of_the_fx_graph():
    seen = []

    def backend(graph, _inputs):
        seen.append(graph)
        return seen[-1].forward

    def run(x):
        order = torch.empty(3, dtype=torch.int64)
        order[torch.tensor([2, 0, 1])] = torch.arange(3)
        return x[order] + torch.from_numpy(np.arange(3.0))

    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    torch.testing.assert_close(tenon.compile(run, backend=backend)(x), run(x))
    assert any(node.op == "get_attr" for node in seen[0].graph.nodes)
    torch.testing.assert_close(seen[0](x)[0], run(x))
