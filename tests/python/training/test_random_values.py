"""Random values in what is differentiated: eager's bits and eager's generator, one graph, and a mask that is kept."""
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.fixture
def drawn(check, leaf):
    """Compares a function plainly and compiled over several calls from one seed each: results, gradients, with `twice` those of gradients, and the
    state of the generator after them. Bits count unless told otherwise."""

    def run(fn, *shape, dtype=torch.float32, layout=lambda x: x, twice=False, exact=True, graphs=1):
        tenon.reset()
        compiled = tenon.compile(fn)
        for seed in range(3):
            seen = []
            for each in (fn, compiled):
                x = layout(leaf(*shape, seed=seed, grad=False).to(dtype)).requires_grad_()
                torch.manual_seed(seed)
                y = each(x)
                loss = (y.double() * torch.arange(y.numel()).reshape(y.shape).cos()).sum()
                (gradient,) = torch.autograd.grad(loss, x, create_graph=twice)
                second = torch.autograd.grad(gradient.pow(2).sum(), x) if twice else ()
                seen.append(((y.stride(), y.requires_grad), [t.detach().contiguous() for t in (y, gradient, *second)], torch.get_rng_state()))
            (shown, values, state), (our_shown, ours, our_state) = seen
            assert our_shown == shown and torch.equal(our_state, state)
            torch.testing.assert_close(ours, values, equal_nan=True, **({"rtol": 0, "atol": 0} if exact else {}))
        stats = tenon.stats()
        assert (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"]) == (graphs, graphs - 1, 0), stats

    return run


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
def test_dropouts(drawn, dtype, p):
    drawn(lambda x: F.dropout(x, p), 7, 5, dtype=dtype)
    drawn(lambda x: F.dropout(x + 1, p, inplace=True) * 1, 7, 5, dtype=dtype)
    drawn(lambda x: F.dropout2d(x, p), 2, 3, 4, 5, dtype=dtype)
    drawn(lambda x: F.dropout1d(x, p), 3, 4, dtype=dtype)
    drawn(lambda x: F.alpha_dropout(x, p, True), 7, 5, dtype=dtype)
    drawn(lambda x: F.feature_alpha_dropout(x + 1, p, True, True) * 1, 2, 3, 4, dtype=dtype)


def test_a_probability_that_varies(leaf):
    compiled = tenon.compile(lambda x, p: F.dropout(x, p).sum())
    for p in (0.1, 0.3, 0.4, 0.0, 1.0, 0.6):
        results = []
        for run in (lambda x, p: F.dropout(x, p).sum(), compiled):
            x = leaf(20)
            torch.manual_seed(3)
            results.append((*torch.autograd.grad(run(x, p), x), torch.get_rng_state()))
        assert torch.equal(results[1][0], results[0][0]) and torch.equal(results[1][1], results[0][1])


@pytest.mark.parametrize("fn", [
    lambda x: F.dropout(x, torch.tensor(0.5)), lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=torch.tensor(0.5)), lambda x: F.dropout(x, 1) + F.dropout(x, 0),
], ids=["tensor", "attention", "ints"])
def test_a_probability_that_is_no_float(leaf, fn):
    results = []
    for run in (fn, tenon.compile(fn)):
        x = leaf(4, 5, 6)
        torch.manual_seed(3)
        results.append((*torch.autograd.grad(run(x).sum(), x), torch.get_rng_state()))
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("fn", [lambda x: F.dropout(x, 0.4), lambda x: F.dropout2d(x * 2, 0.4), lambda x: F.alpha_dropout(x, 0.4, True)], ids=["dropout", "dropout2d", "alpha"])
@pytest.mark.parametrize("layout", [
    lambda x: x.contiguous(memory_format=torch.channels_last), lambda x: x.transpose(1, 3), lambda x: x[:1].expand(4, -1, -1, -1), lambda x: x[..., ::2],
], ids=["channels_last", "transposed", "expanded", "gaps"])
def test_layouts(drawn, fn, layout):
    drawn(fn, 4, 3, 6, 8, layout=layout)
    drawn(lambda x: fn(layout(x)), 4, 3, 6, 8)


@pytest.mark.parametrize("size", [(0, 4), (), (1, 1, 1, 1)], ids=str)
def test_sizes(drawn, size):
    drawn(lambda x: F.dropout(x * 2, 0.5) * 1, *size)


OTHERS = {
    "randn_like": lambda x: x * torch.randn_like(x),
    "randint_like": lambda x: x * torch.randint_like(x, 5),
    "noise": lambda x: x + torch.zeros_like(x).normal_(0, 0.1),
    "bernoulli": lambda x: x * torch.bernoulli(torch.sigmoid(x)),
    "bernoulli given": lambda x: torch.bernoulli(torch.sigmoid(x)),
    "straight through": lambda x: (lambda p: (torch.bernoulli(p) - p).detach() + p)(torch.sigmoid(x)),
    "normal": lambda x: torch.normal(x, x.abs()) * x,
    "poisson": lambda x: torch.poisson(x.abs() * 3) * x,
    "multinomial": lambda x: x[torch.multinomial(torch.softmax(x[:, 0], 0), 3)],
    "reparametrisation": lambda x: (lambda a: a[0] + torch.exp(0.5 * a[1]) * torch.randn_like(a[1]))(x.chunk(2)),
    "rsample": lambda x: torch.distributions.Normal(x, x.exp()).rsample(),
    "gumbel": lambda x: F.gumbel_softmax(x, hard=True),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "no draw": lambda x: x * torch.histc(x, 5),
    "detached": lambda x: F.dropout(x.detach(), 0.5) * x,
}


@pytest.mark.parametrize("fn", OTHERS.values(), ids=OTHERS)
def test_what_is_drawn_ends_no_graph(drawn, fn):
    drawn(fn, 6, 5, dtype=torch.float64, exact=False)


@pytest.mark.parametrize("fn", [
    lambda x: torch.bernoulli(x, 0.3), lambda x: x.bernoulli(p=0.3), lambda x: torch.binomial(torch.full((4,), 5.0, dtype=torch.float64), x.sigmoid()),
], ids=["bernoulli", "keyword", "binomial"])
def test_draws_that_torch_has_no_gradient_for_say_so(leaf, fn):
    compiled = tenon.compile(fn)
    for _ in range(2):
        y = compiled(leaf(4))
        assert y.requires_grad
        with pytest.raises(RuntimeError, match="not implemented"):
            y.sum().backward()


ATTENTION = {
    "plain": {}, "causal": {"is_causal": True}, "scaled": {"scale": -0.3}, "mask": {"attn_mask": torch.arange(49).reshape(7, 7) % 3 > 0},
    "bias": {"attn_mask": torch.arange(49.0).reshape(7, 7).sin().double()}, "everything": {"p": 1.0},
}


@pytest.mark.parametrize("settings", ATTENTION.values(), ids=ATTENTION)
def test_attention(drawn, settings):
    p = settings.get("p", 0.3)
    settings = {name: value for name, value in settings.items() if name != "p"}
    drawn(lambda x: F.scaled_dot_product_attention(x, x * 2, x + 1, dropout_p=p, **settings), 2, 3, 7, 8, dtype=torch.float64, exact=False)


def test_attention_of_groups_and_of_halves(drawn):
    drawn(lambda x: F.scaled_dot_product_attention(x, x[:, :2], x[:, :2] + 1, dropout_p=0.3, enable_gqa=True), 2, 4, 7, 8, dtype=torch.float64, exact=False)
    drawn(lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.3), 2, 4, 7, 8, dtype=torch.bfloat16, exact=False)


@pytest.mark.parametrize("fn", [
    lambda x: F.dropout(x**3, 0.3), lambda x: (F.dropout(x * x, 0.3) @ x.t()).sin(), lambda x: F.alpha_dropout(x**3, 0.3, True), lambda x: F.gumbel_softmax(x, tau=0.5),
    lambda x: F.scaled_dot_product_attention(x, x * 2, x + 1, dropout_p=0.3), lambda x: torch.distributions.Normal(x, x.exp()).rsample().tanh(),
    lambda x: F.softmax(x + torch.randn_like(x).exp(), -1),
], ids=["dropout", "product", "alpha", "gumbel", "attention", "rsample", "noise"])
def test_gradients_of_gradients_read_what_was_drawn(drawn, fn):
    drawn(fn, 6, 5, dtype=torch.float64, twice=True, exact=False)


def test_layers(check):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.1).double()
    compiled, x = tenon.compile(layer), torch.randn(5, 2, 8, dtype=torch.float64)
    for seed in range(3):
        seen = []
        for run in (layer, compiled):
            torch.manual_seed(seed)
            layer.zero_grad()
            run(x).pow(3).sum().backward()
            seen.append([p.grad for p in layer.parameters()] + [torch.get_rng_state()])
        torch.testing.assert_close(seen[1], seen[0])
    assert (tenon.stats()["graphs"], tenon.stats()["graph_breaks"]) == (1, 0)
