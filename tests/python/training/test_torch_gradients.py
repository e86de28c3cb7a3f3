"""Calls of which only torch knows the gradient: a graph makes them with torch's own history, and asks that for the gradients."""
import gc
import threading

import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

from tenon import _kept_runs  # noqa: E402

D = torch.float64
EYE = torch.eye(4, dtype=D)


def positive(x):
    return x @ x.T + EYE


CALLS = {
    "svdvals": torch.linalg.svdvals,
    "singular vectors": lambda x: [t.abs() for t in torch.linalg.svd(x)],
    "one of several results": lambda x: torch.linalg.svd(x)[1],
    "eigvalsh": lambda x: torch.linalg.eigvalsh(positive(x)),
    "cholesky": lambda x: torch.linalg.cholesky(positive(x)),
    "inverse": lambda x: torch.linalg.inv(positive(x)),
    "solve, both": lambda x: torch.linalg.solve(positive(x), x),
    "solve, one": lambda x: torch.linalg.solve(EYE * 2, x),
    "qr": torch.linalg.qr,
    "determinants": lambda x: (torch.logdet(positive(x)), torch.linalg.det(x), torch.linalg.slogdet(x)[1]),
    "a method": lambda x: positive(x).logdet(),
    "matrix_exp": lambda x: torch.matrix_exp(x * 0.1),
    "special": lambda x: (torch.special.i0(x), (x.tanh() * 0.9).erfinv(), x.abs().digamma()),
    "mode, with places": lambda x: torch.mode(x.round(), 0),
    "by name": lambda x: torch.renorm(input=x, p=2, dim=0, maxnorm=1.0),
    "one after another": lambda x: torch.linalg.inv(torch.linalg.cholesky(positive(x))),
    "beside what the catalogue has": lambda x: torch.linalg.svdvals(x.sin()) + torch.linalg.svdvals(x).exp(),
}


def tensors(result):
    return [t for t in (result if isinstance(result, (tuple, list)) else [result]) if t.requires_grad]


def trained(call, level):
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(4, 4, dtype=D))
    optimizer = torch.optim.SGD([weight], 1e-4)
    function = tenon.compile(call) if level == "function" else call

    def step(x):
        optimizer.zero_grad()
        loss = sum(t.tanh().sum() for t in tensors(function(x @ weight)))
        loss.backward()
        optimizer.step()
        return loss

    run = tenon.compile(step) if level == "step" else step
    return [run(torch.randn(4, 4, dtype=D)).detach() for _ in range(3)], weight, weight.grad


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_whole_step_is_one_graph(call):
    torch.testing.assert_close(trained(call, "step"), trained(call, None))
    stats = tenon.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"]) == (2, 0, 0)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_compiled_function(call):
    torch.testing.assert_close(trained(call, "function"), trained(call, None))
    stats = tenon.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"]) == (1, 0, 0)


def kept():
    gc.collect()
    return len(_kept_runs._runs)


def test_what_is_kept_ends_with_what_needs_it(tier, leaf):
    compiled, x = tenon.compile(torch.linalg.inv), leaf(4, 4)
    y = compiled(x)
    assert kept() == 1
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 3 * torch.autograd.grad(torch.linalg.inv(x).sum(), x)[0])
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
    del y
    assert kept() == 0
    y = compiled(x)
    del y  # without gradients
    assert kept() == 0
    with torch.no_grad():
        y = compiled(x)
    assert kept() == 0


def test_a_step_lets_go_where_it_has_computed_the_gradient(leaf, monkeypatch):
    left, gradients = [], _kept_runs.Run.gradients
    monkeypatch.setattr(_kept_runs.Run, "gradients", lambda *args: left.append(kept()) or gradients(*args))

    def step(x):
        (torch.linalg.inv(x).sum() + torch.matrix_exp(x).sum() + torch.logdet(positive(x))).backward()

    compiled, x = tenon.compile(step, fullgraph=True), leaf(4, 4)
    compiled(x)
    assert left == [3, 2, 1]
    twin = leaf(4, 4)
    step(twin)
    torch.testing.assert_close(x.grad, twin.grad)


def test_a_result_without_a_gradient_is_as_it_is_to_torch(tier):
    """Zeros are another thing: equal singular values have no gradients of their vectors."""
    compiled, x = tenon.compile(torch.linalg.svd, fullgraph=True), torch.eye(3, dtype=D, requires_grad=True)
    u, s, v = compiled(x)
    s.sum().backward()
    torch.testing.assert_close(x.grad, torch.eye(3, dtype=D))


def test_an_operand_without_a_gradient_gets_none(gradients, leaf):
    gradients(lambda x, n: torch.special.zeta(x.abs() + 2, n.abs() + 1), lambda: (leaf(3, grad=False), leaf(3)))


def test_what_torch_saves_may_not_be_written_behind_the_call(leaf):
    x = leaf(4, 4)
    for call, fails in ((torch.matrix_exp, True), (torch.linalg.inv, False)):  # which saves what it gives alone
        for run in (call, tenon.compile(call, fullgraph=True)):
            y = run(x)
            with torch.no_grad():
                x.mul_(1.5)
            if not fails:
                y.sum().backward()
                continue
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
    for run in (torch.linalg.inv, tenon.compile(torch.linalg.inv, fullgraph=True)):
        y = run(x)
        z = y.sin()
        y.detach().mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


@pytest.mark.parametrize("call", [torch.linalg.inv, torch.linalg.svdvals, torch.logdet, torch.special.i0e, lambda x: torch.linalg.eigh(x)[1].abs()],
                         ids=["inv", "svdvals", "logdet", "i0e", "eigh"])
def test_gradients_of_gradients_of_a_compiled_function(tier, leaf, call):
    def function(x):
        return call(positive(x)).sin()

    def penalised(fn, x):
        y = fn(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.autograd.grad(g.square().sum() + y.sum(), x)[0]

    compiled = tenon.compile(function, fullgraph=True)
    for seed in range(2):
        torch.testing.assert_close(penalised(compiled, leaf(4, 4, seed=seed)), penalised(function, leaf(4, 4, seed=seed)))
    assert kept() == 0


def test_what_is_drawn_is_drawn_once(leaf):
    def call(x):
        return F.fractional_max_pool2d(x, 2, output_size=3)

    compiled = tenon.compile(call, fullgraph=True)
    for run in (call, compiled, compiled):
        x = leaf(1, 2, 8, 8)
        torch.manual_seed(3)
        y = run(x)
        y.square().sum().backward()
        if run is call:
            want = y, x.grad, torch.get_rng_state()
        torch.testing.assert_close((y, x.grad, torch.get_rng_state()), want)


@pytest.mark.parametrize("options", [{"backend": "reference"}, {"backend": lambda graph, inputs: graph.forward}], ids=["reference", "a callable"])
def test_other_backends(gradients, leaf, options):
    gradients(lambda x: torch.linalg.svdvals(x.sin()) + torch.linalg.inv(positive(x)).diagonal(), lambda: (leaf(4, 4),), **options)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint(gradients, leaf, use_reentrant):
    def function(x):
        return torch.utils.checkpoint.checkpoint(lambda y: torch.linalg.inv(positive(y)).cos(), x * 2, use_reentrant=use_reentrant)

    gradients(function, lambda: (leaf(4, 4),))


def test_losses_of_sequences(gradients, leaf):
    """Of which the meta device says nothing."""
    targets, lengths = torch.tensor([[1, 2, 3], [2, 4, 1]]), torch.tensor([3, 2])
    gradients(lambda x: F.ctc_loss(x.log_softmax(2), targets, torch.tensor([6, 6]), lengths), lambda: (leaf(6, 2, 5),))


@pytest.mark.parametrize("call", [
    lambda x: torch.norm(x * 2, p="nuc"),
    lambda x: F.interpolate(x[None, None], scale_factor=0.5, mode="bicubic", antialias=True),
    lambda x: F.multilabel_margin_loss(x * 2, torch.tensor([[1, 2, -1, 0]] * 4)),
    lambda x: F.embedding(torch.tensor([1, 2, 2]), x, scale_grad_by_freq=True),
], ids=["norm", "interpolate", "multilabel_margin_loss", "embedding"])  # fmt: skip
def test_a_function_whose_op_has_no_such_gradient(gradients, leaf, call):
    gradients(call, lambda: (leaf(4, 4),))


def test_a_derivative_in_python_is_not_asked_of_stand_ins():
    called = []

    @torch.library.custom_op("tenon_tests::sum_of_several", mutates_args=())
    def several(xs: list[torch.Tensor]) -> torch.Tensor:
        return sum(xs[1:], xs[0].clone())

    several.register_fake(lambda xs: torch.empty_like(xs[0]))
    several.register_autograd(lambda ctx, gradient: called.append(gradient) or [gradient, gradient])
    x = torch.ones(3, dtype=D, requires_grad=True)
    y = tenon.compile(lambda x: several([x.sin(), x.cos()]))(x)
    assert called == []
    y.sum().backward()
    torch.testing.assert_close(x.grad, x.cos() - x.sin())
    assert len(called) == 1


def test_threads(leaf):
    compiled = tenon.compile(lambda x: torch.linalg.svdvals(x.sin()).sum(), fullgraph=True)
    compiled(leaf(4, 4))
    found = {}

    def train(seed):
        x = leaf(4, 4, seed=seed)
        for _ in range(20):
            compiled(x).backward()
        found[seed] = x.grad / 20

    threads = [threading.Thread(target=train, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        x = leaf(4, 4, seed=seed)
        torch.testing.assert_close(found[seed], torch.autograd.grad(torch.linalg.svdvals(x.sin()).sum(), x)[0])


def test_sizes_that_vary(leaf):
    def function(x):
        return torch.special.i0e(x * 2).sum(0)

    compiled = tenon.compile(function, fullgraph=True, dynamic=True)
    for size in (3, 4, 5, 6):
        x, twin = leaf(size, 2), leaf(size, 2)
        (g,), (w,) = torch.autograd.grad(compiled(x).sum(), x), torch.autograd.grad(function(twin).sum(), twin)
        torch.testing.assert_close(g, w)
    assert tenon.stats()["graphs"] == 1


@pytest.mark.parametrize("call", [torch.linalg.svdvals, lambda x: torch.linalg.norm(x, "nuc"), lambda x: torch.mode(x.round(), 1)[0], lambda x: F.adaptive_avg_pool1d(x[None], 3)])
def test_sizes_that_no_operand_of_the_gradient_has(leaf, call):
    compiled = tenon.compile(call, dynamic=True)
    for size in (5, 5, 6, 7):
        x, twin = leaf(size, 4), leaf(size, 4)
        (g,), (w,) = torch.autograd.grad(compiled(x).sum(), x), torch.autograd.grad(call(twin).sum(), twin)
        torch.testing.assert_close(g, w)
    assert tenon.stats()["eager_fallbacks"] == 0


def test_gradients_of_gradients_in_a_whole_step():
    def slope(x):
        (g,) = torch.autograd.grad(torch.logdet(positive(x)), x, create_graph=True)
        return torch.autograd.grad(g.square().sum(), x)[0]

    x = torch.randn(4, 4, dtype=D, requires_grad=True)
    compiled = tenon.compile(slope)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), slope(x))


def test_what_torch_keeps_may_not_be_written():
    def step(x):
        y = positive(x)
        z = torch.linalg.inv(y)
        z.mul_(2)
        z.sum().backward()

    for run in (step, tenon.compile(step)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            run(torch.randn(4, 4, dtype=D, requires_grad=True))


def test_what_has_no_derivative_is_refused():
    def step(x):
        torch.unique(x * 1).sum().backward()

    compiled = tenon.compile(step)
    for run in (step, compiled, compiled):
        with pytest.raises(RuntimeError, match="not implemented"):
            run(torch.ones(4, dtype=D, requires_grad=True))
