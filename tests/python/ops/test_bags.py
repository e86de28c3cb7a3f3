"""Sums and means of bags of embeddings, as close to float64 as eager is; offsets and indices that eager refuses raise."""
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional
judge = pytest.importorskip("tests.opinfo.judge")

OPTIONS = [{}, {"mode": "sum"}, {"mode": "mean", "padding_idx": 2}, {"mode": "sum", "padding_idx": -1}]


def agrees(fn, weight):
    compiled = tenon.compile(fn, fullgraph=True)(weight)
    assert judge.disagreement(compiled, fn(weight), fn(weight.double())) is None
    assert not tenon.stats()["opaque_nodes"]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("index", [torch.int64, torch.int32])
def test_bags(options, index):
    torch.manual_seed(0)
    weight = torch.randn(10, 6)
    rows, line = torch.randint(0, 10, (5, 7)).to(index), torch.randint(0, 10, (23,)).to(index)
    agrees(lambda w: F.embedding_bag(rows, w, **options), weight)
    for offsets in ([0], [0, 5, 5, 9, 23, 23], [0, 0, 1, 22]):
        at = torch.tensor(offsets, dtype=index)
        agrees(lambda w: F.embedding_bag(line, w, at, **options), weight)
        agrees(lambda w: F.embedding_bag(line, w, torch.cat([at, torch.tensor([23], dtype=index)]), include_last_offset=True, **options), weight)
    if options.get("mode") == "sum":
        agrees(lambda w: F.embedding_bag(rows, w, per_sample_weights=torch.arange(35).reshape(5, 7).to(w.dtype) / 7, **options), weight)
        agrees(lambda w: F.embedding_bag(line, w, torch.tensor([0, 4, 11], dtype=index), per_sample_weights=torch.arange(23).to(w.dtype), **options), weight)


def test_module_with_varying_sizes():
    bag = torch.nn.EmbeddingBag(20, 8, mode="sum").eval()
    compiled = tenon.compile(bag)
    with torch.no_grad():
        for count, bags in ((10, 3), (17, 5), (4, 2), (31, 9)):
            line, at = torch.arange(count) % 20, torch.arange(bags) * (count // bags)
            torch.testing.assert_close(compiled(line, at), bag(line, at))
    assert tenon.stats()["graph_breaks"] == 0 and not tenon.stats()["opaque_nodes"]


@pytest.mark.parametrize("line, offsets", [([1, 2, 3], [1, 2]), ([1, 2, 3], [0, 4]), ([1, 12, 3], [0, 2]), ([1, -1, 3], [0, 2])])
def test_what_eager_refuses_raises(line, offsets):
    fn = lambda i, o, w: F.embedding_bag(i, w, o, mode="sum")  # noqa: E731
    arguments = torch.tensor(line), torch.tensor(offsets), torch.ones(10, 6)
    with pytest.raises((RuntimeError, IndexError)):
        fn(*arguments)
    with pytest.raises((RuntimeError, IndexError)):
        tenon.compile(fn)(*arguments)
