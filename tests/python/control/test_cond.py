"""tenon.cond: one graph with both branches, which gives what eager execution gives on either side."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


def both_sides(check, fn, *args, flip=0):
    """Compares on arguments and with the argument number `flip` negated, for the default backend and for calls of the trace."""
    recorder = tenon.compile(fn, backend=lambda graph, inputs: graph.forward, fullgraph=True)
    compiled = tenon.compile(fn, fullgraph=True)
    other = [-a if i == flip else a for i, a in enumerate(args)]
    for given in (args, other, args, other):
        want = fn(*given)
        check.same(compiled(*given), want)
        check.same(recorder(*given), want)
    assert tenon.stats()["graphs"] == 2 and tenon.stats()["eager_fallbacks"] == 0


def test_two_branches(check):
    def fn(x, y):
        return tenon.cond(x.sum() > 0, lambda a, b: a * 2 + b, lambda a, b: a - b.sin(), (x, y)) * 3

    both_sides(check, fn, torch.ones(4), torch.randn(4))


def test_closures_globals_and_constants(check):
    weight, offset = torch.randn(4, 4), 2.5

    def fn(x):
        shift = x.mean()

        def positive(v):
            return v @ weight + shift * offset

        def negative(v):
            return v * torch.tensor([1.0, 2.0, 3.0, 4.0]) - shift

        return tenon.cond(x.sum() > 0, positive, negative, (x,)).relu() + shift

    both_sides(check, fn, torch.ones(4, 4))


def test_nested(check):
    def fn(x, y):
        def inner(v):
            return tenon.cond(y.sum() > 0, lambda u: u + y, lambda u: u * y, (v,))

        return tenon.cond(x.sum() > 0, inner, lambda v: v - tenon.cond(y.max() > 0, lambda u: u + 1, lambda u: u + 2, (v,)), (x,))

    both_sides(check, fn, torch.ones(3), torch.ones(3))
    both_sides_again = tenon.compile(fn, fullgraph=True)
    for a in (1.0, -1.0):
        for b in (1.0, -1.0):
            x, y = torch.full((3,), a), torch.full((3,), b)
            check.same(both_sides_again(x, y), fn(x, y))


def test_structures(check):
    def fn(x):
        got = tenon.cond(x.sum() > 0, lambda v: {"a": v + 1, "b": [v * 2, ("k", v.sum())]}, lambda v: {"a": v - 1, "b": [v / 2, ("k", v.mean())]}, (x,))
        return got["a"], got["b"][0], got["b"][1]

    both_sides(check, fn, torch.ones(4))


def test_modules_in_branches(check):
    a, b = torch.nn.Linear(4, 2), torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh())

    def fn(x):
        return tenon.cond(x.sum() > 0, a, b, (x,))

    with torch.no_grad():
        both_sides(check, fn, torch.ones(3, 4))


@pytest.mark.parametrize("pred", [lambda x: x.sum() > 0, lambda x: (x.sum() > 0).reshape(1, 1), lambda x: x.max().int(), lambda x: x.clamp(min=0).sum()])
def test_conditions_of_any_dtype(check, pred):
    both_sides(check, lambda x: tenon.cond(pred(x), lambda v: v + 1, lambda v: v * 5, (x,)), torch.ones(4) * 2)


def test_a_plain_condition_takes_one_branch(check, graphs):
    def fn(x, flag):
        return tenon.cond(flag, lambda v: v + 1, lambda v: v - 1, (x,)) if flag is not None else tenon.cond(pred=False, true_fn=torch.sin, false_fn=torch.cos, operands=[x])

    c, x = tenon.compile(fn, backend=graphs, fullgraph=True), torch.randn(3)
    for flag in (True, False, None):
        check.same(c(x, flag), fn(x, flag))
    assert [g.op_names for g in graphs.seen] == [["torch.Tensor.add"], ["torch.Tensor.sub"], ["torch.cos"]]


def test_numpy(check):
    def fn(a):
        return tenon.cond(a.sum() > 0, lambda v: np.sqrt(v), lambda v: np.exp(v), (a,))

    c = tenon.compile(fn, fullgraph=True)
    for a in (np.ones(3), -np.ones(3)):
        check.same(c(a), fn(a))


def test_the_graph_shows_both(check, graphs):
    c, x = tenon.compile(lambda x: tenon.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,)), backend=graphs, fullgraph=True), torch.ones(3)
    check.same(c(x), x.sin())
    (graph,) = graphs.seen
    assert graph.op_names == ["torch.Tensor.sum", "torch.Tensor.gt", "tenon.cond"]
    code = graph.code()
    assert "torch.Tensor.sin" in code and "torch.Tensor.cos" in code and "tenon.cond(gt, then_2, otherwise_2, (x,))" in code
    assert "cond(" in graph.tir() and "graph @then" in graph.tir()


def test_as_fx(check):
    def backend(graph, example_inputs):
        assert torch.ops.higher_order.cond in [n.target for n in graph.graph.nodes]
        return graph.forward

    def fn(x):
        return tenon.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))

    c = tenon.compile(fn, backend=backend, fullgraph=True)
    with torch.no_grad():
        for x in (torch.ones(3), -torch.ones(3)):
            check.same(c(x), fn(x))


def test_in_an_export(check, tmp_path):
    net = torch.nn.Linear(4, 4)

    def fn(x):
        return tenon.cond(x.sum() > 0, net, lambda v: v.clone(), (x,)) * 2

    tenon.export(fn, (torch.ones(2, 4),)).save(tmp_path / "choice.tnx")
    loaded = tenon.load(tmp_path / "choice.tnx")
    with torch.no_grad():
        for x in (torch.ones(2, 4), -torch.ones(2, 4)):
            check.same(loaded(x), fn(x))


LOG = []


@pytest.mark.parametrize(
    "true_fn, words",
    [
        (lambda v: v, "older than it"),
        (lambda v: v.view(-1), "older than it"),
        (lambda v: v.add_(1), "writes into a tensor|older"),
        (lambda v: LOG.append(1) or v + 1, "a branch of tenon.cond does"),
        (lambda v: (v + 1).double(), "f64"),
        (lambda v: (v + 1)[:2], r"f32\[2\]"),
        (lambda v: (v + 1, v * 2), "different"),
        (lambda v: v + 1 if v.sum() > 100 else v - 1, "value|decid|branch|truth|elements"),
        (lambda v: v + {}["missing"], "raises an exception"),
    ],
)
def test_what_a_branch_may_not_do(check, true_fn, words):
    def fn(x):
        return tenon.cond(x.sum() > 0, true_fn, lambda v: v - 1, (x,))

    with pytest.raises(tenon.GraphBreakError, match=words):
        tenon.compile(fn, fullgraph=True)(torch.ones(4))
    x = -torch.ones(4)  # the other side runs as plain Python
    for _ in range(2):
        check.same(tenon.compile(fn)(x), fn(x))
    assert LOG == []


def test_eager_calls():
    x = torch.ones(3)
    assert tenon.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,)).equal(x + 1)
    assert tenon.cond(False, lambda: 1, lambda: 2) == 2


def test_cond_of_torch():
    def fn(x):
        y = x * 2
        return torch.cond(y.sum() > 0, lambda a: (a.sin(), a + y), lambda a: (a.cos(), a - y), (x,))

    compiled = tenon.compile(fn, fullgraph=True)
    with torch.no_grad():
        for x in (torch.ones(3), -torch.ones(3)):
            want = (x.sin(), x * 3) if x.sum() > 0 else (x.cos(), -x)
            torch.testing.assert_close(compiled(x), want)
