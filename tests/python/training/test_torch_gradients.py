"""Calls of which only torch knows the gradient: a whole step makes both as they are, and stays one graph."""
import pytest

import tenon

torch = pytest.importorskip("torch")

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


def test_gradients_of_gradients_are_torchs():
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
