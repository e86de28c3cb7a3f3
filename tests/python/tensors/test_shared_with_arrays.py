"""Tensors and arrays that share memory: Tensor.numpy, numpy.asarray, torch.from_numpy and the like in captured code."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

from tests.python.tensors.writes import check_writes, copies  # noqa: E402


@pytest.fixture
def writes(check):
    def run(fn, *arguments, **options):
        check_writes(check.same, fn, copies(*arguments), **options)

    return run


def tensor():
    return torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.numpy() * 2,
        lambda x: x.numpy(force=False).sum(axis=0),
        lambda x: np.asarray(x),
        lambda x: np.asarray(x, dtype=np.float64),
        lambda x: x.__array__() + 1,
        lambda x: x.__array__(np.float64),
        lambda x: x.T.numpy(),
        lambda x: x.numpy().T[1:],
        lambda x: x[1].numpy()[::-1],
        lambda x: (x * 2).numpy(),
        lambda x: (x * 2)[1:].numpy().reshape(3, 1),
        lambda x: x.expand(4, 2, 3).numpy(),
        lambda x: (x.numpy().strides, x.numpy().flags.f_contiguous, x.numpy().flags["W"], x.numpy().dtype),
        lambda x: (x.numpy(), x.numpy()),
        lambda x: x.numpy()[0, 1],
        lambda x: (x > 2).numpy(),
        lambda x: x.detach().cpu().numpy().mean(),
        lambda x: x.data.numpy() + 1,
    ],
)
def test_arrays_of_tensors(writes, fn):
    writes(fn, tensor())
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize(
    "fn",
    [
        lambda a: torch.from_numpy(a) * 2,
        lambda a: torch.from_numpy(a),
        lambda a: torch.from_numpy(a.T)[1:],
        lambda a: torch.from_numpy(a)[1].view(3, 1),
        lambda a: (torch.from_numpy(a + 1), torch.from_numpy(a)),
        lambda a: torch.as_tensor(a),
        lambda a: torch.as_tensor(a, dtype=torch.float64),
        lambda a: torch.as_tensor(a, dtype=torch.float32, device="cpu"),
        lambda a: torch.as_tensor(a, dtype=torch.int64),
        lambda a: torch.asarray(a),
        lambda a: torch.tensor(a),
        lambda a: torch.tensor(a.T),
        lambda a: torch.tensor(a, dtype=torch.float16),
        lambda a: torch.tensor(a.sum()) + torch.as_tensor(a[0, 1]),
        lambda a: torch.from_numpy(np.asarray(a.sum())),
        lambda a: torch.tensor([a[0, 0], a[0, 1] * 2, a.sum()]) + torch.as_tensor([a.sum()]),
        lambda a: torch.tensor([a[0, 0], a[1, 1]], dtype=torch.float64),
        lambda a: torch.from_numpy(a).numpy(),
    ],
)
def test_tensors_of_arrays(writes, fn):
    writes(fn, tensor().double().numpy())
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: np.ones_like(x, dtype=np.float64),
        lambda x: np.full_like(x, 3),
        lambda x: np.concatenate([x, x]),
        lambda x: np.stack([x, x.numpy()]),
        lambda x: np.where(x.numpy() > 1, x, 0),
        lambda x: np.expand_dims(x, 0),
        lambda x: np.linalg.norm(x, axis=0),
        lambda x: np.sort(x),
        lambda x: np.asarray([x[0], x[1]]),
        lambda x: (np.vstack([x, x]), np.hstack((x, x)), np.column_stack([x[0], x[1]]), np.atleast_3d(x)),
        lambda x: (np.roll(x, 1), np.outer(x[0], x[1]), np.triu(x), np.diag(x), np.ravel(x), np.append(x, x)),
        lambda x: (np.fft.rfft(x), np.fft.fftshift(x), np.linalg.det(x[:, :2])),
        lambda x: [torch.from_numpy(part) for part in np.meshgrid(x[0], x[1])],
    ],
)
def test_numpy_functions_of_tensors(writes, fn):
    writes(fn, tensor(), graphs=1)


@pytest.mark.parametrize("indices", [[1, 0, 1], list(range(3)) * 13, []])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_arrays_among_indices(writes, indices, dtype):
    def fn(x, i):
        x[i] = x[i] * 2
        x[0, i] += 1
        return x[i], x[:, i], x[i, None], x[i, -i], x[np.array([0, 2])]

    writes(fn, torch.randn(3, 3), np.array(indices, dtype=dtype), graphs=1)


@pytest.mark.parametrize("index", [np.array([[1, 0]]), np.array([True, False, True]), np.array(1), np.array([0, 1])[::-1]])
def test_other_arrays_among_indices(check, index):
    def fn(x, i):
        try:
            return x[i] + 1
        except (TypeError, ValueError) as error:
            return str(error)

    check(fn, (torch.randn(3, 3), index))


def through_the_array(x):
    a = x.numpy()
    a += 1
    a[0] = 5
    return x * 2, a[1:], x


def through_the_tensor(a):
    t = torch.from_numpy(a)
    t.add_(1)
    t[0] = 7
    return t, t[1:], a * 2


def there_and_back(x):
    y = x * 2
    a = y.numpy()
    a[0] = 1
    y.mul_(3)
    b = torch.from_numpy(a[:, 1:])
    b.add_(1)
    return y, a[1:], b, b[0], y.sum()


def through_a_view(x):
    a = x[1:].numpy()
    a[:, 0] = x[0, 0] = 9
    np.multiply(a, 2, out=a)
    return a, x


def one_memory_two_arrays(x):
    a, b = x.numpy(), x[:, 1:].numpy()
    a[0, 1] = 20
    b[1] = -1
    return a, b, x + 1


def copies_are_apart(x):
    a = x.numpy()
    copy, other = torch.tensor(a), np.array(a)
    a += 1
    copy -= 1
    other *= 2
    return copy, other, x


@pytest.mark.parametrize("fn", [through_the_array, there_and_back, through_a_view, one_memory_two_arrays, copies_are_apart])
def test_writes_are_seen_through_both(writes, fn):
    writes(fn, tensor(), graphs=1)


def test_writes_to_a_tensor_reach_the_array(writes):
    writes(through_the_tensor, tensor().numpy(), graphs=1)


def test_writes_are_counted_by_the_tensor_that_wrote():
    def fn(x):
        a = x.numpy()
        a += 1
        t = torch.from_numpy(a)
        t.add_(1).mul_(2)
        return t

    x = tensor()
    t = tenon.compile(fn)(x)
    assert (x._version, t._version) == (0, 2)


def test_an_argument_given_as_both_is_written(check):
    def fn(x, a):
        x.add_(1)
        return a * 2

    compiled, x, y = tenon.compile(fn), tensor(), tensor()
    for _ in range(3):
        check.same(compiled(x, x.numpy()), fn(y, y.numpy()))
        check.same(x, y)


def test_varying_sizes(check):
    def fn(x):
        a = x.numpy()
        return a[1:], torch.from_numpy(a.T), a.sum(axis=0), x * 2

    compiled = tenon.compile(fn)
    for n in (2, 4, 5, 7, 9):
        x = torch.randn(n, 3)
        check.same(compiled(x), fn(x))
    assert tenon.stats()["graphs"] == 2


@pytest.mark.parametrize(
    "fn, argument",
    [
        (lambda x: x.numpy(), torch.ones(3, requires_grad=True)),
        (lambda x: x.numpy(), torch.ones(3, dtype=torch.bfloat16)),
        (lambda a: torch.from_numpy(a[::-1]), np.arange(3.0)),
        (lambda a: torch.from_numpy(a.sum()), np.arange(3.0)),
        (lambda x: x.numpy() * x, torch.ones(3)),
    ],
)
def test_errors_are_eagers(fn, argument):
    with pytest.raises(Exception) as want:
        fn(argument)
    compiled = tenon.compile(fn)
    for _ in range(2):
        with pytest.raises(want.type) as got:
            compiled(argument)
        assert str(got.value) == str(want.value)


def test_tensors_that_require_grad_are_detached_first(check):
    x = torch.ones(3, requires_grad=True)
    graphs = check(lambda x: x.detach().numpy() * 2, (x,))
    assert len(graphs) == 1


def test_inference_mode(check):
    def fn(a):
        t = torch.from_numpy(a)
        return t.is_inference(), t + 1

    a = np.arange(3.0)
    with torch.inference_mode():
        want, got = fn(a), tenon.compile(fn)(a)
        assert got[0] == want[0] and got[1].is_inference()
    x = tensor()
    check(lambda x: x.numpy() + 1, (x,))
    with torch.inference_mode():
        inference = tensor()
    check(lambda x: (torch.from_numpy(x.numpy()).is_inference(), x.numpy() + 1), (inference,))


def test_a_function_that_warns_is_called_as_it_is():
    compiled = tenon.compile(lambda x: np.sin(x))
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match="__array_wrap__"):
            torch.testing.assert_close(compiled(tensor()), tensor().sin())
