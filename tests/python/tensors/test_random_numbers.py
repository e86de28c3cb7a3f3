"""Random numbers: the same as in plain execution from the same seed, in the same order, used or not."""
import copy

import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.fixture
def draws(check):
    """Compares two calls from one seed, and the state of the generator after them."""

    def run(fn, *arguments, fallbacks=0, graphs=1):
        for options in ({}, {"backend": lambda graph, inputs: graph.forward}):
            tenon.reset()
            compiled = tenon.compile(fn, **options)
            compiled(*[a.clone() for a in arguments])  # a capture draws no more than the call itself
            for seed in (7, 8):
                torch.manual_seed(seed)
                want = [fn(*[a.clone() for a in arguments]) for _ in range(2)], torch.rand(1)
                torch.manual_seed(seed)
                got = [compiled(*[a.clone() for a in arguments]) for _ in range(2)], torch.rand(1)
                check.same(got, want)
            stats = tenon.stats()
            assert fallbacks is None or stats["eager_fallbacks"] == fallbacks, stats
            assert graphs is None or stats["graphs"] == graphs, stats

    return run


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x + torch.rand(3) * torch.randn_like(x),
        lambda x: x + torch.randn(2, 3) + torch.rand(3, dtype=torch.float64).float(),
        lambda x: F.dropout(x, 0.5, training=True) * 2,
        lambda x: F.dropout(x, 0.5, training=False) * 2,
        lambda x: torch.randint(0, 10, (3,)) + x,
        lambda x: torch.bernoulli(torch.sigmoid(x)) + x,
        lambda x: torch.multinomial(torch.softmax(x, -1), 2) * 2,
        lambda x: torch.randperm(3) + x,
        lambda x: torch.normal(x, 1.0) + 1,
        lambda x: torch.normal(0.0, 1.0, (2, 3)) + x,
        lambda x: torch.rand_like(x) - torch.rand_like(x),
        lambda x: F.gumbel_softmax(x) + 1,
        lambda x: F.rrelu(x, training=True) + 1,
        lambda x: F.alpha_dropout(x, 0.3, True) + 1,
    ],
)
def test_functions(draws, fn):
    draws(fn, torch.randn(2, 3))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.normal_(),
        lambda x: x.uniform_(-1, 1),
        lambda x: x.bernoulli_(0.3),
        lambda x: x[0].exponential_(),
        lambda x: x[1:].random_(0, 5),
        lambda x: torch.empty_like(x).normal_() + x,
        lambda x: torch.nn.init.uniform_(x),
        lambda x: F.dropout(x, 0.5, True, True),
        lambda x: F.dropout(x[0], 0.5, inplace=True),
    ],
)
def test_in_place(draws, fn):
    draws(lambda x: (fn(x), x + 1), torch.randn(2, 3))


IN_MEMORY_ORDER = {
    "dropout": lambda x: F.dropout(x, 0.5, True),
    "dropout2d": lambda x: F.dropout2d(x, 0.5, True),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, True),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "bernoulli_": lambda x: torch.zeros_like(x).bernoulli_(x.sigmoid()),
    "poisson": lambda x: torch.poisson(x.abs() * 3),
    "normal": lambda x: torch.normal(x, x.abs()),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, dim=1),
    "rand_like": lambda x: torch.rand_like(x),
    "normal_": lambda x: torch.empty_like(x).normal_(),
    "multinomial": lambda x: torch.multinomial(x.flatten(1).softmax(-1), 2),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
    "a copy in row-major order": lambda x: F.dropout(x.contiguous(), 0.5, True),
    "a tensor with gaps": lambda x: F.dropout(x[:, 1:], 0.5, True) + torch.rand_like(x)[:, 1:],
}


@pytest.mark.parametrize("fn", IN_MEMORY_ORDER.values(), ids=IN_MEMORY_ORDER)
@pytest.mark.parametrize("layout", ["channels_last", "transposed", "permuted", "one_channel_last"])
@pytest.mark.filterwarnings("ignore:dropout2d")
def test_the_order_of_elements_in_memory(draws, fn, layout):
    x = torch.randn(2, 3, 4, 5)
    single = torch.empty_strided((6, 1, 4, 5), (20, 1, 5, 1)).copy_(x.reshape(6, 1, 4, 5))
    layouts = {"channels_last": x.contiguous(memory_format=torch.channels_last), "transposed": x.transpose(2, 3), "permuted": x.permute(3, 1, 0, 2)}
    x = {**layouts, "one_channel_last": single}[layout]
    gives_itself = layout == "one_channel_last" and fn is IN_MEMORY_ORDER["a tensor with gaps"]  # dropout of no elements: a break
    draws(lambda x: (fn(x), fn(x * 2) + 1), x, graphs=3 if gives_itself else 1)


@pytest.mark.parametrize("fn", [
    lambda x: F.dropout(x, 0.5, True), lambda x: F.alpha_dropout(x, 0.5, True), lambda x: F.feature_alpha_dropout(x, 0.5, True), torch.poisson,
    torch.rand_like, torch.bernoulli, lambda x: F.rrelu(x, training=True), lambda x: F.pixel_unshuffle(F.dropout(x + 1, 0.5, True), 2),
])
@pytest.mark.parametrize("size", [(3, 1, 4, 8), (1, 1, 4, 6)], ids=str)
def test_strides_of_a_single_channel_in_channels_last(fn, size):
    x = torch.empty_strided(size, (size[2] * size[3], 1, size[3], 1)).uniform_()
    assert tenon.compile(fn)(x).stride() == fn(x).stride()


def test_the_order_of_what_is_written_in_memory(draws):
    draws(lambda x: x + x.clone().t().uniform_().sum(1, keepdim=True).t(), torch.randn(2, 3))
    draws(lambda x: (F.dropout(x.t(), 0.5, True, True), x + 1), torch.randn(2, 3))
    draws(lambda x: (x[:, 1:].normal_(), x + 1), torch.randn(2, 3), graphs=None)  # with gaps: by eager execution


def test_networks_in_channels_last(check):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Dropout2d(0.5), torch.nn.Dropout(0.5), torch.nn.Conv2d(8, 4, 3))
    net = net.to(memory_format=torch.channels_last)
    compiled, plain = tenon.compile(net), copy.deepcopy(net)
    with torch.no_grad():
        for batch in (2, 3, 4, 5):
            x = torch.randn(batch, 3, 8, 8).contiguous(memory_format=torch.channels_last)
            torch.manual_seed(batch)
            want = plain(x)
            torch.manual_seed(batch)
            got = compiled(x)
            assert got.stride() == want.stride()
            torch.testing.assert_close(got, want)
    stats = tenon.stats()
    assert (stats["graph_breaks"], stats["eager_fallbacks"], stats["recompiles"]) == (0, 0, 1), stats


def test_unused_numbers_advance_the_generator(draws):
    def fn(x):
        torch.rand(5)
        y = x + torch.rand(3)
        x.clone().normal_()
        return y

    draws(fn, torch.randn(2, 3))


def test_nothing_but_unused_numbers():
    def fn(x):
        torch.rand(5)
        return x

    compiled, x = tenon.compile(fn), torch.ones(3)
    compiled(x)
    torch.manual_seed(3)
    fn(x)
    want = torch.rand(1)
    torch.manual_seed(3)
    compiled(x)
    assert torch.equal(torch.rand(1), want)


def test_order_is_the_programs(draws):
    def fn(x):
        a, b, c = torch.rand(3), torch.rand(3), torch.rand(3)
        return c - x, a * b, b

    draws(fn, torch.randn(3))


def test_modules_in_training(check):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Dropout(0.1))
    compiled, x = tenon.compile(net), torch.randn(5, 4)
    with torch.no_grad():
        for mode in (True, False, True):
            net.train(mode)
            torch.manual_seed(1)
            want = net(x)
            torch.manual_seed(1)
            check.same(compiled(x), want)
    assert tenon.stats()["eager_fallbacks"] == 0


def test_a_generator_of_its_own(check):
    def fn(x, g):
        return x + torch.rand(3, generator=g)

    compiled, x = tenon.compile(fn), torch.ones(3)
    ours, theirs = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    for _ in range(3):
        check.same(compiled(x, ours), fn(x, theirs))


def test_numbers_are_not_drawn_twice_when_the_graph_refuses(check):
    def fn(x, i):
        noise = torch.rand(4)
        x.add_(noise)
        return x[i] * 2

    compiled, x, y = tenon.compile(fn), torch.zeros(4), torch.zeros(4)
    compiled(x.clone(), torch.tensor([1]))
    for index in ([0, 3], [0, 9], [1, 1]):
        i = torch.tensor(index)
        outcomes = []
        for f, t in ((fn, y), (compiled, x)):
            torch.manual_seed(5)
            try:
                outcomes.append(f(t, i))
            except IndexError as failure:
                outcomes.append(str(failure))
            outcomes.append(torch.rand(1))
        check.same(outcomes[2:], outcomes[:2])
        check.same(x, y)


ROWS = torch.linspace(-1, 1, 96).reshape(32, 3)
VARYING = {
    "randn": lambda n, s: torch.randn(n, 3) * s,
    "rand": lambda n, s: ROWS[:n] + torch.rand((n, 3)),
    "randint": lambda n, s: torch.randint(0, 1000, (n,)),
    "bounds": lambda n, s: torch.randint(n, 3 * n, (2, n + 1)),
    "keywords": lambda n, s: torch.randint(low=0, high=n, size=(3,)),
    "size": lambda n, s: ROWS[:n] * torch.randn(ROWS[:n].shape),
    "randperm": lambda n, s: ROWS[:n][torch.randperm(n)],
    "dropout": lambda n, s: torch.nn.functional.dropout(ROWS[:n], s, True),
    "normal": lambda n, s: torch.normal(0.0, s, (n, 3)),
    "two": lambda n, s: torch.randn(n, 2) @ torch.rand(2, n // 2),
}


@pytest.mark.parametrize("fn", VARYING.values(), ids=VARYING.keys())
def test_sizes_and_numbers_that_vary_are_inputs_of_random_calls(fn):
    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True)
    for n in range(4, 14):
        torch.manual_seed(n)
        want, after = fn(n, n / 20), torch.rand(2)
        torch.manual_seed(n)
        torch.testing.assert_close(compiled(n, n / 20), want)
        assert torch.equal(torch.rand(2), after)
    assert tenon.stats()["recompiles"] == 1, tenon.stats()


def test_random_calls_refuse_what_eager_refuses():
    fn = lambda n: torch.randint(0, n - 10, (n,))  # noqa: E731
    compiled = tenon.compile(fn)
    for n in (12, 13, 14):
        torch.manual_seed(n)
        want = fn(n)
        torch.manual_seed(n)
        assert torch.equal(compiled(n), want)
    for n in (5, 10):
        with pytest.raises(RuntimeError, match="random_ expects"):
            compiled(n)
