"""Calls that torch makes itself, and writes, under sizes that vary: one graph for all, as long as torch gives what it gave for others."""

import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional

torch.manual_seed(0)
BATCHES = (2, 3, 5, 4, 7, 64)


def leaves(value):
    return [value] if torch.is_tensor(value) else [leaf for each in value for leaf in leaves(each)] if isinstance(value, (list, tuple)) else []


def check(fn, make, most=2):
    """Same results, layouts and writes as eager, from the same random numbers."""
    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True)
    with torch.no_grad():
        for batch in BATCHES:
            mine = make(batch)
            theirs = tuple(each.clone() for each in mine)
            torch.manual_seed(batch)
            want = fn(*theirs)
            after = torch.get_rng_state()
            torch.manual_seed(batch)
            got = compiled(*mine)
            assert torch.equal(after, torch.get_rng_state())
            for a, b in zip(leaves(got), leaves(want), strict=True):
                torch.testing.assert_close(a, b)
                assert a.stride() == b.stride()
            torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
            assert [each._version for each in mine] == [each._version for each in theirs]
    assert tenon.stats()["recompiles"] + 1 <= most and tenon.stats()["eager_fallbacks"] == 0, tenon.stats()


def rows(batch):
    return (torch.randn(batch, 6),)


@pytest.mark.parametrize("fn", [
    lambda x: F.dropout(x, 0.5) * 2, lambda x: F.dropout2d(x[:, :, None, None], 0.3), lambda x: F.alpha_dropout(x, 0.3), lambda x: x + torch.randn_like(x),
    lambda x: torch.bernoulli(x.sigmoid()), lambda x: torch.multinomial(x.softmax(1), 3), lambda x: F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], dropout_p=0.2),
    lambda x: torch.special.gammaincc(x.abs(), x.exp()), lambda x: torch.linalg.qr(x @ x.T)[1].abs(),
], ids=["dropout", "dropout2d", "alpha_dropout", "randn_like", "bernoulli", "multinomial", "attention", "gammaincc", "qr"])
def test_a_call_that_torch_makes(fn):
    check(fn, rows)


@pytest.mark.parametrize("layer", [
    torch.nn.LSTM(6, 8, batch_first=True), torch.nn.LSTM(6, 8, 2, dropout=0.2), torch.nn.GRU(6, 8, bidirectional=True), torch.nn.RNN(6, 4),
    torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(), torch.nn.Linear(8, 2)),
], ids=["lstm", "lstm_dropout", "gru", "rnn", "dropout"])
def test_layers_in_training(layer):
    check(layer.train(), lambda batch: (torch.randn(batch, 5, 6),))
    check(layer, lambda batch: (torch.randn(5, batch, 6),))


def test_a_layout_other_than_rows_is_kept():
    check(lambda x: torch.special.gammaincc(x.exp(), x.abs()), lambda batch: (torch.randn(6, batch).t(),))
    check(lambda x, y: torch.special.gammaincc(x.exp(), y.abs()), lambda batch: (torch.randn(batch, 3, 4, 5).to(memory_format=torch.channels_last), torch.randn(5)))


def increase(x):
    x.add_(1)
    return x * 2


def fill(x, out):
    out.copy_(x)
    x[:, 1:] += out[:, :1]
    return out + 1


def test_an_argument_that_is_written():
    check(increase, rows)
    check(fill, lambda batch: (torch.randn(batch, 6), torch.empty(batch, 6)))
    check(lambda x: F.dropout(x, 0.5, inplace=True), rows)
    check(increase, lambda batch: (torch.randn(batch, 12)[:, ::2],), len(BATCHES))
    check(increase, lambda batch: (torch.randn(6, batch).t(),), len(BATCHES))


def test_results_of_a_shape_that_no_operand_has():
    check(lambda x: torch.cartesian_prod(x[:, 0], x[:, 1]).sum(1), rows, len(BATCHES))
    check(lambda x: torch.block_diag(x, x.t()), rows, len(BATCHES))


def test_a_number_by_which_sides_change_places():
    tenon.reset()
    turned = tenon.compile(lambda x, k: torch.rot90(x, k, (1, 2)) + 1)
    for step, k in enumerate((0, 2, 1, 3, 2, 0, 1, 4, -1, 2)):
        for sides in ((5 + step, 7), (6 + step, 6 + step)):
            x = torch.arange(3.0 * sides[0] * sides[1]).reshape(3, *sides)
            got, want = turned(x, k), torch.rot90(x, k, (1, 2)) + 1
            assert torch.equal(got, want) and got.stride() == want.stride(), (k, sides)
    assert tenon.stats()["eager_fallbacks"] == 0, tenon.stats()


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.fft.rfft(x, dim=0),
        lambda x: torch.fft.rfft(x.repeat(1, len(x))) * 2,
        lambda x: torch.fft.irfft(x.to(torch.complex64), dim=0) * 2,
        lambda x: torch.fft.irfft(torch.fft.rfft(x, dim=0) * 0.5, n=len(x), dim=0) + 1,
        lambda x: torch.stft(x[:, 0].repeat(9), 4, 2, window=torch.ones(4), return_complex=True).abs(),
    ],
    ids=["rfft", "rows", "irfft", "filter", "stft"],
)
def test_transforms_that_halve_or_double_a_size(fn):
    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True)
    for size in (5, 8, 13, 7, 6, 31, 2, 4):
        x = torch.rand(size, 2)
        got, want = compiled(x), fn(x)
        assert got.stride() == want.stride()
        torch.testing.assert_close(got, want)
    assert tenon.stats()["graphs"] <= 3


def test_a_quotient_that_near_sizes_share_is_no_constant():
    """Frames of long signals: signals a sample shorter have as many."""
    tenon.reset()
    window = torch.hann_window(256)
    fn = lambda x: torch.stft(x, 256, 128, window=window, return_complex=True).abs()  # noqa: E731
    compiled = tenon.compile(fn)
    for length in (8000, 9001, 12000, 7777):
        x = torch.randn(2, length)
        torch.testing.assert_close(compiled(x), fn(x))
    assert tenon.stats()["eager_fallbacks"] == 0


@pytest.mark.parametrize("hop", [2, 3, 5, 7, 16])
def test_windows_that_hop(hop):
    """A size is a quotient of what varies: the number of windows."""
    check(lambda x: torch.stft(x, 16, hop, window=torch.ones(16), return_complex=True).abs(), lambda batch: (torch.rand(31 * batch + 5),), most=3)


@pytest.mark.parametrize("factor", [1.5, 2.5, 0.75])
def test_sampled_anew(factor):
    check(lambda x: F.interpolate(x, scale_factor=factor, mode="linear"), lambda batch: (torch.rand(1, 2, 4 * batch + 1),), most=3)


@pytest.mark.parametrize("fn", [
    lambda i: torch.arange(20.0).topk(1 + i % 3)[0], lambda i: torch.linalg.qr(torch.arange(60.0).view(20, 3)[: 12 + i % 3])[1].abs(), lambda i: torch.randn(12 + i % 3, 3).sum(1),
], ids=["topk", "qr", "randn"])
def test_a_number_that_is_a_remainder(fn):
    compiled = tenon.compile(fn)
    for i in range(20):
        torch.manual_seed(i)
        want = fn(i)
        torch.manual_seed(i)
        torch.testing.assert_close(compiled(i), want)
    assert tenon.stats()["eager_fallbacks"] == 0
