"""Tensors that require grad, and blocks that switch grad mode, inside compiled functions."""
import pytest

import tenon

torch = pytest.importorskip("torch")


def block(p):
    with torch.no_grad():
        y = p * 2
        v = p[1:]
    return y + 1, v, p


@torch.no_grad()
def decorated(p):
    return p * 2, p.view(-1)


def nested(x):
    with torch.no_grad():
        with torch.enable_grad():
            y = x * 2
    return y


@pytest.mark.parametrize("fn", [block, decorated, lambda p: p.detach() * 2, lambda p: p.detach(), lambda p: (p, p.requires_grad, p.shape)])
@pytest.mark.parametrize("leaf", [True, False])
def test_what_needs_no_gradient_is_captured(check, fn, leaf):
    def make():
        p = torch.nn.Parameter(torch.arange(4.0))
        return p if leaf else p * 1

    for options in ({}, {"backend": lambda graph, inputs: graph.forward}):
        compiled = tenon.compile(fn, **options)
        for _ in range(2):
            check.same(compiled(make()), fn(make()))
    assert tenon.stats()["eager_fallbacks"] == 0 and torch.is_grad_enabled()


@pytest.mark.parametrize("fn", [nested, lambda p: p * 2, lambda p: (p.detach() + p).sum()])
def test_gradients_are_eagers(check, fn):
    compiled, p, q = tenon.compile(fn), torch.nn.Parameter(torch.arange(4.0)), torch.nn.Parameter(torch.arange(4.0))
    for _ in range(2):
        got, want = compiled(p), fn(q)
        check.same(got, want)
        got.sum().backward()
        want.sum().backward()
        check.same(p.grad, q.grad)


def test_detached_results_share_memory(check):
    compiled, p = tenon.compile(lambda p: p.detach()[1:]), torch.nn.Parameter(torch.arange(4.0))
    compiled(p)
    view = compiled(p)
    with torch.no_grad():
        view.fill_(9)
    assert p.tolist() == [0, 9, 9, 9] and not view.requires_grad and p._version == view._version


def test_detach_gives_no_view():
    def fn(x):
        y = x * 2
        return x.detach(), y, y.detach(), x.data, x[1:].detach(), x.detach()[1:]

    compiled, x = tenon.compile(fn), torch.ones(3)
    for _ in range(2):
        whole, y, of_result, data, part, of_whole = compiled(x)
        assert all(t._base is None for t in (whole, y, of_result, data, part)) and of_whole._base is not x
        assert part.data_ptr() == of_whole.data_ptr() and of_whole.tolist() == [1, 1] and of_result.data_ptr() == y.data_ptr()


def test_requires_grad_in_place(check):
    compiled = tenon.compile(lambda x: (x * 2).requires_grad_())
    for _ in range(2):
        check.same(compiled(torch.ones(3)), (torch.ones(3) * 2).requires_grad_())


def test_a_view_made_without_gradients_requires_what_it_views():
    weight = torch.nn.Parameter(torch.ones(4, 2))
    with torch.no_grad():
        view, plain = weight.view(2, 4), torch.ones(2, 4)
    fn = tenon.compile(lambda x: x * 2)
    with torch.no_grad():
        for x in (view, plain, view):
            assert torch.equal(fn(x), x * 2)
        assert tenon.stats()["graph_breaks"] == 0
    for x in (plain, view, plain):
        assert fn(x).requires_grad == (x * 2).requires_grad == x.requires_grad


def test_a_tensor_made_between_two_breaks_is_no_leaf(check):
    def fn(x):
        w = x.clone().requires_grad_()
        y = w * 2
        return w.is_leaf, y.is_leaf, y.detach().is_leaf, y.requires_grad, y.detach() + 1

    check(fn, (torch.randn(3),))


def test_hooks_of_saved_tensors_run_as_often_as_in_eager():
    def run(fn):
        packed, unpacked = [], []
        x = torch.ones(3, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: unpacked.append(1) or t):
            fn(x).backward()
        return len(packed), len(unpacked), x.grad.tolist()

    def reads(x):
        y = x * x
        return y.sum() + y.grad_fn._saved_self.sum()

    compiled = tenon.compile(reads)
    assert [run(compiled) for _ in range(3)] == [run(reads)] * 3


@pytest.mark.parametrize("mode", (torch.no_grad, torch.inference_mode))
@pytest.mark.parametrize("again", (False, True))
def test_writes_through_views_of_where_gradients_were_off(mode, again):
    def run(x, scale):
        with mode():
            y = x.view(2)
        if again:
            y = y[:]
        before = y.is_inference(), y._is_view()
        y += 1
        try:
            y *= scale
        except RuntimeError as error:
            return before, str(error)

    def given():
        return torch.zeros(2), torch.ones(2, requires_grad=True)

    found, wanted = tenon.compile(run)(*given()), run(*given())
    assert found[0] == wanted[0]
    assert found[1].split("Given")[0].split("created")[1] == wanted[1].split("Given")[0].split("created")[1]
