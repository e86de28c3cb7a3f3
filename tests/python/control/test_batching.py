"""torch.vmap of functions that compute point by point is a part of the graph; of others it is torch's."""
import pytest

import tenon
from tests.python.conftest import same

torch = pytest.importorskip("torch")
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex  # noqa: E402

X = torch.linspace(-2, 2, 12).reshape(3, 4)
Y = torch.linspace(-1, 3, 12).reshape(3, 4)
V = torch.linspace(0, 1, 4)


def over_three(f):
    return lambda *a: torch.vmap(torch.vmap(torch.vmap(f, (None, None, 0)), (None, 0, None)), (0, None, None))(*a)


def causal_mask(padding):
    def visible(batch, query, key):
        return query.new_ones((), dtype=torch.bool) & (key <= query) & padding[batch, key]

    rows, columns = padding.shape
    with TransformGetItemToIndex():
        return over_three(visible)(torch.arange(rows), torch.arange(columns), torch.arange(columns))


def shape_of_example(x):
    return torch.vmap(lambda r: r * r.shape[0] + r.dim())(x)


BATCHES = {
    "one": (lambda x, y, v: torch.vmap(lambda r: r.sin() * 2)(x) + 1, True),
    "two": (lambda x, y, v: torch.vmap(lambda r, s: torch.where(r > s, r, s * 2))(x, y), True),
    "one that all share": (lambda x, y, v: torch.vmap(lambda r, s: r * s, (0, None))(x, v), True),
    "what is seen around it": (lambda x, y, v: torch.vmap(lambda r: r - v)(x * 2), True),
    "several results": (lambda x, y, v: torch.vmap(lambda r: {"a": r + 1, "b": (r.exp(), r > 0)})(x), True),
    "of numbers": (lambda x, y, v: torch.vmap(lambda n: n * x)(v), True),
    "of numbers with another one": (lambda x, y, v: torch.vmap(lambda n, m: n * m + n)(v, v + 1), True),
    "nested": (lambda x, y, v: torch.vmap(torch.vmap(lambda n, m: n * 10 + m, (None, 0)), (0, None))(x[:, 0].clone(), v), True),
    "the batch last": (lambda x, y, v: torch.vmap(lambda r: r * 2, out_dims=1)(x), True),
    "made like an example": (lambda x, y, v: torch.vmap(lambda r: r + torch.ones_like(r) + r.new_zeros(r.shape))(x), True),
    "its own shape": (lambda x, y, v: shape_of_example(x), True),
    "integers with floats": (lambda x, y, v: torch.vmap(lambda n: n + x)(torch.arange(3)), True),
    "a number in another dtype": (lambda x, y, v: torch.vmap(lambda n: x + n)(v.double()), None),
    "an index": (lambda x, y, v: torch.vmap(lambda i: x[:, :2][torch.stack([i, i])])(torch.tensor([1, 0])), None),
    "expanded": (lambda x, y, v: torch.vmap(lambda r: r.expand(3, r.shape[0]) + 1)(x), True),
    "nested of one that the outer has": (lambda x, y, v: torch.vmap(lambda n: torch.vmap(lambda m: n * 2)(v))(x[:, 0].clone()), True),
    "a sum": (lambda x, y, v: torch.vmap(lambda r: r.sum())(x), False),
    "a product": (lambda x, y, v: torch.vmap(torch.dot)(x, y), False),
    "another dimension": (lambda x, y, v: torch.vmap(lambda c: c * 2, in_dims=1)(x), False),
    "a view": (lambda x, y, v: torch.vmap(lambda r: r.reshape(2, 2))(x), False),
    "a transposed view": (lambda x, y, v: torch.vmap(lambda r: r.reshape(2, 2).t() + 1)(x), False),
    "itself": (lambda x, y, v: torch.vmap(lambda r: r)(x), None),
    "nothing of the example": (lambda x, y, v: torch.vmap(lambda r: v + 1)(x), True),
    "one of two of the example": (lambda x, y, v: torch.vmap(lambda r: (v * 2, r * 2), out_dims=1)(x), False),
    "a write": (lambda x, y, v: torch.vmap(lambda r: (r * 2).add_(1))(x), False),
    "a squeezed one": (lambda x, y, v: torch.vmap(lambda r: r.squeeze() + 1)(x), None),
    "turned": (lambda x, y, v: torch.vmap(lambda r: r.flip(0) + r)(x), False),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches(name):
    fn, whole = BATCHES[name]
    compiled = tenon.compile(fn)
    for x, y, v in ((X, Y, V), (X + 1, Y * 2, V - 1), (X[:2].clone(), Y[:2].clone(), V), (X[:, :3].clone(), Y[:, :3].clone(), V[:3].clone())):
        try:
            want = fn(x, y, v)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                compiled(x, y, v)
            continue
        same(compiled(x, y, v), want)
    assert whole is None or (tenon.stats()["graph_breaks"] == 0) == whole, tenon.stats()


def test_a_mask_by_indices():
    compiled = tenon.compile(causal_mask, fullgraph=True)
    for padding in (torch.ones(2, 5, dtype=torch.bool), torch.arange(15).reshape(3, 5) % 4 > 0):
        same(compiled(padding), causal_mask(padding))


def test_a_mask_that_only_torch_makes():
    def visible(rows, query, key):
        return (rows > 0).any() & (key <= query)

    def fn(x, n):
        with TransformGetItemToIndex():
            mask = over_three(visible)(x, torch.arange(n), torch.arange(n))
        return mask * x.sum()

    compiled = tenon.compile(fn)
    for n in (4, 4, 6):
        same(compiled(X, n), fn(X, n))
    assert tenon.stats()["graph_breaks"] > 0


def test_an_index_that_is_out_of_range():
    def fn(x, at):
        with TransformGetItemToIndex():
            return torch.vmap(lambda i: x[i] * 2)(at)

    compiled = tenon.compile(fn)
    same(compiled(X, torch.tensor([0, -1, 2])), fn(X, torch.tensor([0, -1, 2])))
    for run in (fn, compiled):
        with pytest.raises(IndexError, match="out of (bounds|range)"):
            run(X, torch.tensor([0, 3, 2]))


@pytest.mark.parametrize("body", [lambda r: r * 2 if r.sum() > 0 else r, lambda r: r * r[0].item(), lambda r: r + float(r.max()), lambda r: r * 2 if bool(r[0] > 0) else r])
def test_what_torch_refuses_of_an_example(body):
    """Elements of an example are nobody's: torch says so, and no graph takes those of the first one."""
    compiled = tenon.compile(lambda x: torch.vmap(body)(x))
    for run in (lambda x: torch.vmap(body)(x), compiled, compiled):
        with pytest.raises(RuntimeError):
            run(X)


def test_what_a_function_keeps_of_an_example():
    kept = []

    def fn(x):
        return torch.vmap(lambda r: kept.append(r.shape) or r * 2)(x)

    compiled = tenon.compile(fn)
    for run in (fn, compiled, compiled):
        same(run(X), X * 2)
    assert kept == [torch.Size([4])] * 3


def test_gradients_of_a_batch():
    def fn(x):
        return torch.vmap(lambda r: r.sin() * r)(x).sum()

    found = []
    for run in (fn, tenon.compile(fn)):
        x = X.clone().requires_grad_()
        run(x).backward()
        found.append(x.grad)
    same(found[1], found[0])


def test_random_numbers_are_torchs():
    def fn(x):
        return torch.vmap(lambda r: r + torch.rand(4), randomness="different")(x)

    compiled = tenon.compile(fn)
    for seed in range(2):
        torch.manual_seed(seed)
        want = fn(X)
        torch.manual_seed(seed)
        same(compiled(X), want)


def test_another_function_mode_in_the_program():
    class Doubling(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.sin else result

    def fn(x):
        with Doubling():
            return torch.sin(x) + 1

    compiled = tenon.compile(fn)
    for _ in range(2):
        same(compiled(X), fn(X))
