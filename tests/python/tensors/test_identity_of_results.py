"""Whose memory a result has, and which object it is."""
import copy
import io
import pickle

import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional


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


# What may give its operand as it is, a view of it, or a copy: eager says which.
GIVEN = {
    "to a dtype": lambda x: x.to(torch.float32),
    "to a device": lambda x: x.to("cpu"),
    "to another": lambda x: x.to(x),
    "to, as a copy": lambda x: x.to(torch.float32, copy=True),
    "type": lambda x: x.type(torch.float32),
    "type by name": lambda x: x.type("torch.FloatTensor"),
    "type_as": lambda x: x.type_as(x),
    "type_as another": lambda x: x.type_as(torch.zeros(1, dtype=torch.float64)),
    "contiguous": lambda x: x.contiguous(),
    "channels last": lambda x: x[None, None].contiguous(memory_format=torch.channels_last),
    "contiguous row": lambda x: x[1].contiguous(),
    "real": lambda x: x.real,
    "conj": lambda x: x.conj(),
    "resolve_conj": lambda x: x.resolve_conj(),
    "positive": lambda x: torch.positive(x),
    "plus": lambda x: +x,
    "reshape": lambda x: x.reshape(2, 3),
    "reshape turned": lambda x: x.T.reshape(-1),
    "view_as": lambda x: x.view_as(x),
    "expand_as": lambda x: x.expand_as(x),
    "squeeze": lambda x: x.squeeze(),
    "flatten": lambda x: x[0].flatten(),
    "ravel": lambda x: x.ravel(),
    "permute": lambda x: x.permute(0, 1),
    "movedim": lambda x: x.movedim(0, 0),
    "detach": lambda x: x.detach(),
    "alias": lambda x: torch.ops.aten.alias(x),
    "all of it": lambda x: x[...],
    "atleast_2d": lambda x: torch.atleast_2d(x),
    "broadcast_to": lambda x: torch.broadcast_to(x, (2, 3)),
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, x)[0],
    "as_tensor": lambda x: torch.as_tensor(x),
    "asarray": lambda x: torch.asarray(x),
    "no dropout": lambda x: F.dropout(x, 0.5, training=False),
    "no alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, False),
    "identity": lambda x: torch.nn.Identity()(x),
    "no padding": lambda x: F.pad(x, (0, 0)),
    "one chunk": lambda x: x.chunk(1)[0],
    "cat of one": lambda x: torch.cat([x]),
    "tile by one": lambda x: x.tile(1),
    "no roll": lambda x: x.roll(0),
    "no flip": lambda x: x.flip([]),
    "no rotation": lambda x: torch.rot90(x, 0),
    "einsum turned": lambda x: torch.einsum("ij->ji", x),
    "einsum diagonal": lambda x: torch.einsum("ii->i", x[:, :2]),
    "swapaxes": lambda x: x.swapaxes(0, 0),
    "mT": lambda x: x.mT,
    "same dtype": lambda x: x.view(torch.float32),
    "there and back": lambda x: x.view(torch.int32).view(torch.float32),
    "same size": lambda x: F.interpolate(x[None], size=3),
    "scaled by one": lambda x: F.interpolate(x[None], scale_factor=1),
    "pooled by one": lambda x: F.adaptive_avg_pool1d(x, 3),
    "sum_to_size": lambda x: x.sum_to_size(2, 3),
    "in place": lambda x: F.relu(x, inplace=True),
    "hardtanh_": lambda x: F.hardtanh_(x, 0, 2),
    "requires_grad_": lambda x: x.requires_grad_(False),
    "through NumPy": lambda x: torch.from_numpy(x.numpy()),
    "one of a meshgrid": lambda x: torch.meshgrid(x[0], indexing="ij")[0],
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_given_back(name, check):
    give = GIVEN[name]
    with torch.no_grad():
        for write in (False, True):

            def fn(x):
                given = give(x)
                if write:
                    given.add_(1)
                return given is x, given

            plain, ours, compiled = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3), tenon.compile(fn)
            for _ in range(2):
                want, got = fn(plain), compiled(ours)
                assert got[0] is want[0] and (got[1] is ours) is (want[1] is plain)
                check.same(got[1], want[1])
                check.same(ours, plain)
                assert got[1].stride() == want[1].stride() and got[1].storage_offset() == want[1].storage_offset()
                assert (got[1].untyped_storage().data_ptr() == ours.untyped_storage().data_ptr()) == (want[1].untyped_storage().data_ptr() == plain.untyped_storage().data_ptr())
