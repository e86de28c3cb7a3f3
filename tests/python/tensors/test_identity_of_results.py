"""Whose memory a result has, and which object it is."""
import copy
import io
import pickle

import pytest

import tenon

torch = pytest.importorskip("torch")


def test_what_aliases_in_eager_aliases_here():
    compiled = tenon.compile(lambda x: (x, x.view(-1), x[1:], x + 1), fullgraph=True)
    x = torch.randn(4, 4)
    for _ in range(2):
        itself, flat, tail, fresh = compiled(x)
        assert itself is x
        assert flat.data_ptr() == x.data_ptr() and tail.data_ptr() == x[1:].data_ptr() and tail.storage_offset() == 4
        assert fresh.data_ptr() != x.data_ptr()


def test_operations_that_give_their_argument_keep_identity():
    compiled = tenon.compile(lambda x: (x.contiguous(), x.float(), x.to(torch.float32), x.contiguous() + 1), fullgraph=True)
    x = torch.randn(3)
    a, b, c, _ = compiled(x)
    assert a is x and b is x and c is x


def test_views_of_results_share_storage():
    compiled = tenon.compile(lambda x: (lambda y: (y, y.t(), y[1]))(x + 1), fullgraph=True)
    y, turned, row = compiled(torch.ones(2, 3))
    assert turned.data_ptr() == y.data_ptr() and row.data_ptr() == y[1].data_ptr()
    y[1, 0] = 9
    assert turned[0, 1] == 9 and row[0] == 9


def test_a_result_is_an_ordinary_tensor():
    result = tenon.compile(lambda x: x * 2)(torch.ones(4))
    assert type(result) is torch.Tensor and result.is_leaf and not result.requires_grad and result.untyped_storage().resizable()
    assert result._version == 0 and result.is_contiguous() and result.untyped_storage().nbytes() == 16
    assert torch.equal(pickle.loads(pickle.dumps(result)), result) and torch.equal(copy.deepcopy(result), result)
    buffer = io.BytesIO()
    torch.save(result, buffer)
    result.resize_(100)
    assert torch.equal(result[:4], torch.full((4,), 2.0))
    grown = tenon.compile(lambda x: x * 2)(torch.ones(4)).requires_grad_()
    (grown * 3).sum().backward()
    assert torch.equal(grown.grad, torch.full((4,), 3.0))
    out = tenon.compile(lambda x: x * 2)(torch.ones(4))
    assert torch.add(out, 1, out=out) is out and out.numpy()[0] == 3


def test_results_are_not_overwritten_by_the_next_call():
    compiled = tenon.compile(lambda x: x * 2)
    results = [compiled(torch.full((1000,), float(i))) for i in range(20)]
    for i, result in enumerate(results):
        assert torch.equal(result, torch.full((1000,), 2.0 * i))
