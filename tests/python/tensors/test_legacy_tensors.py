"""Old ways to make and convert tensors: part of the graph, as today's calls that stand for them."""
import pytest

import tenon

torch = pytest.importorskip("torch")

X = torch.arange(6.0)

CALLS = {
    "type": lambda x: (x + 1, x.type(), x.long().type()),
    "type_of_a_class": lambda x: (x + 0.5).type(torch.LongTensor) + 1,
    "type_of_a_name": lambda x: (x + 0.5).type("torch.IntTensor") + 1,
    "new_of_numbers": lambda x: x.new([1, 2]) + x.long().new((3, 4)),
    "new_of_sizes": lambda x: x.new(2, 3).fill_(2.0) + x.new(3).zero_(),
    "float_tensor": lambda x: torch.FloatTensor([1, 2]) + x[:2],
    "long_tensor": lambda x: x[torch.LongTensor([1, 2])],
    "tensor": lambda x: torch.Tensor([1, 2]) + torch.Tensor(2).zero_(),
}


@pytest.mark.parametrize("name", CALLS)
def test_old_calls(name):
    fn = CALLS[name]
    compiled = tenon.compile(fn, fullgraph=True)
    want = fn(X)
    for _ in range(2):
        found = compiled(X)
        assert repr(found) == repr(want)


def test_the_default_dtype():
    compiled = tenon.compile(lambda x: torch.Tensor([1, 2]) + x)
    assert compiled(X[:2]).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled(X[:2]).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_sizes_that_vary():
    compiled = tenon.compile(lambda x: x.new(x.shape[0], 2).fill_(1.0))
    for count in range(2, 8):
        assert compiled(torch.ones(count)).tolist() == [[1.0, 1.0]] * count
