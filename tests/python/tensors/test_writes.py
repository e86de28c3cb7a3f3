"""Writes into torch tensors: in-place operations, items, out=, views of what is written, version counters."""
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional

from tests.python.tensors.writes import check_writes, copies  # noqa: E402


@pytest.fixture
def writes(check):
    def run(fn, *arguments, **options):
        check_writes(check.same, fn, copies(*arguments), **options)

    return run


def test_argument_and_views_of_it(writes):
    def fn(x, y):
        x.add_(1)
        v = x.view(-1)
        v.mul_(2)
        y[0] = x.sum()
        y[1:3] += 5
        return x, v[0], y.t()

    writes(fn, torch.randn(2, 3), torch.randn(4), graphs=1)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.add_(1),
        lambda x: x.mul_(x),
        lambda x: x.sub_(0.5),
        lambda x: x.clamp_(0, 1),
        lambda x: x.masked_fill_(x > 0, 2.0),
        lambda x: x.zero_(),
        lambda x: x.fill_(3),
        lambda x: x.copy_(torch.arange(4.0)),
        lambda x: torch.relu_(x),
        lambda x: F.relu(x, inplace=True),
        lambda x: F.leaky_relu(x, 0.1, True),
        lambda x: torch.sigmoid_(x),
        lambda x: torch.add(x, 1, out=x),
        lambda x: x.addcmul_(x, x),
        lambda x: x.copy_(x),
        lambda x: x.t().neg_(),
        lambda x: x.detach().sigmoid_(),
    ],
)
def test_in_place_operations(writes, fn):
    writes(lambda x: (fn(x), x * 2), torch.randn(4, 4), graphs=1)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(0, 1.0),
        lambda x: x.__setitem__(slice(1, None), torch.ones(4)),
        lambda x: x.__setitem__((slice(None), 1), 7),
        lambda x: x.__setitem__((slice(None, None, 2), slice(1, 3)), x[:2, :2].clone()),
        lambda x: x.__setitem__(x > 0, 0.0),
        lambda x: x.__setitem__(torch.tensor([0, 2]), torch.ones(4)),
        lambda x: x.__setitem__(..., 3),
        lambda x: x.__setitem__(None, 3),
        lambda x: x.__setitem__((0, 0), x[1, 1]),
        lambda x: x.__setitem__(slice(None), x),
    ],
)
def test_items(writes, write):
    def fn(x):
        write(x)
        return x + 1

    writes(fn, torch.randn(4, 4), graphs=1)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.view(-1),
        lambda x: x.t(),
        lambda x: x[1],
        lambda x: x[:, 1:3],
        lambda x: x[::2, ::3],
        lambda x: x.diagonal(),
        lambda x: x.unsqueeze(1),
        lambda x: x.reshape(2, 2, 4).permute(2, 0, 1)[1:],
        lambda x: x.chunk(2)[1],
        lambda x: x.unbind(1)[2],
        lambda x: x.detach(),
        lambda x: x.view_as(x),
        lambda x: x.expand(4, 4),
        lambda x: x.narrow(0, 1, 2).select(1, 0),
    ],
)
def test_views(writes, view):
    def through_the_view(x):
        v = view(x)
        v.mul_(2)
        x.sub_(1)
        return x, v, view(x).sum(), v + 1

    def born_in_the_graph(x):
        y = x * 3
        before = view(y)
        y.add_(1)
        view(y).neg_()
        return y, before, x

    writes(through_the_view, torch.randn(4, 4), graphs=1)
    writes(born_in_the_graph, torch.randn(4, 4), graphs=1)


@pytest.mark.parametrize("make", [lambda: torch.randn(4, 4).t(), lambda: torch.randn(4, 8)[:, ::2], lambda: torch.randn(6, 4)[1:5], lambda: torch.randn(4, 4, 1)[..., 0]])
def test_arguments_of_other_layouts(check, make):
    def fn(x):
        x += 1
        x[0] = x[1] * 2
        return x, x * 2

    torch.manual_seed(1)
    base = make()
    check_writes(check.same, fn, lambda: [base.clone(memory_format=torch.preserve_format) if base.is_contiguous() else torch.as_strided(base._base.clone(), base.shape, base.stride(), base.storage_offset())], graphs=1)


def test_out(writes):
    def fn(a, b, out):
        given = torch.mul(a, b, out=out)
        return given, given is out, torch.add(a, b, out=None)

    writes(fn, torch.randn(3), torch.randn(3), torch.zeros(3), graphs=1)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.bool, torch.float64, torch.bfloat16])
def test_dtypes_are_kept(writes, dtype):
    def fn(x):
        x[1:] = 1
        x |= x if not x.dtype.is_floating_point else x
        return x

    def arithmetic(x):
        x += 1
        x *= 2
        return x

    if dtype.is_floating_point or dtype is torch.int32:
        writes(arithmetic, torch.tensor([1, 0, 3]).to(dtype), graphs=1)
    if not dtype.is_floating_point:
        writes(fn, torch.tensor([1, 0, 3]).to(dtype), graphs=1)


def test_in_place_operations_give_the_same_object(writes):
    def fn(x):
        y = x + 1
        return x.add_(1) is x, y.mul_(2) is y, x.contiguous() is x, x.to(torch.float32) is x, y.contiguous() is y

    writes(fn, torch.randn(3), graphs=1)


def test_read_before_and_after_a_write(writes):
    def fn(x):
        before, kept = x * 2, x.clone()
        x.add_(1)
        after = x * 2
        return before, kept, after

    writes(fn, torch.randn(5), graphs=1)


def test_a_write_that_changes_nothing_is_counted(writes):
    writes(lambda x: x.copy_(x) is x, torch.randn(3))


def test_parameters_and_buffers():
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.tensor(0))
            self.register_buffer("mean", torch.zeros(3))
            self.scale = torch.nn.Parameter(torch.ones(3), requires_grad=False)

        def forward(self, x):
            self.seen.add_(1)
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.scale.clamp_(0, 0.5)
            return (x - self.mean) * self.scale + self.seen

    torch.manual_seed(0)
    plain, ours, x = Counts(), Counts(), torch.randn(4, 3)
    compiled = tenon.compile(ours)
    for step in range(3):
        torch.testing.assert_close(compiled(x + step), plain(x + step))
        torch.testing.assert_close(ours.state_dict(), plain.state_dict())
    assert tenon.stats()["eager_fallbacks"] == 0 and tenon.stats()["graphs"] == 1


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.t_(),
        lambda x: x.resize_(2),
        lambda x: x.data.add_(1),
        lambda x: x.unsqueeze_(0),
        lambda x: x.expand(3, 4, 4).add_(1),
        lambda x: x[1:].copy_(x[:-1]),
        lambda x: x.mul_(x.t()),
        lambda x: x.t().copy_(x),
        lambda x: torch.add(x[:1], 1, out=x),
        lambda x: x.add_("a"),
        lambda x: x.add_(torch.ones(3, 4, 4)),
        lambda x: x.long().add_(0.5),
        lambda x: x.__setitem__(9, 1.0),
        lambda x: x.__setitem__(slice(0, 2), torch.ones(3)),
    ],
)
def test_what_is_not_recorded_is_eagers(check, write):
    def fn(x):
        y = x + 1
        write(x)
        return x * 2 + y.sum()

    def outcome(f, x):
        try:
            return f(x), x
        except Exception as failure:
            return type(failure).__name__, str(failure), x

    compiled, given, plain = tenon.compile(fn), torch.ones(4, 4), torch.ones(4, 4)
    for _ in range(2):
        want = outcome(fn, plain)
        got = outcome(compiled, given)
        check.same(got, want)
        assert given._version == plain._version and given.stride() == plain.stride()


def test_interleaved_columns_do_not_overlap(writes):
    def fn(x):
        x[:, 0] += x[:, 1]
        x[:, 2].copy_(x[:, 0])
        return x

    writes(fn, torch.randn(5, 4), graphs=1)


def test_nothing_is_written_when_the_graph_refuses(check):
    def fn(x, i):
        x.add_(1)
        return x[i] * 2

    compiled, x, y = tenon.compile(fn), torch.zeros(4), torch.zeros(4)
    good, bad = torch.tensor([0, 3]), torch.tensor([0, 9])
    for i in (good, bad, good):
        if i is bad:
            for f, t in ((fn, y), (compiled, x)):
                with pytest.raises(IndexError):
                    f(t, i)
        else:
            check.same(compiled(x, i), fn(y, i))
        check.same(x, y)
        assert x._version == y._version


def test_inference_mode(check):
    def fn(x):
        x.add_(1)
        return x * 2

    compiled, plain = tenon.compile(fn), fn
    ordinary = [torch.zeros(3), torch.zeros(3)]
    with torch.inference_mode():
        made = [torch.zeros(3), torch.zeros(3)]
        for a, b in (ordinary, made):
            check.same(compiled(a), plain(b))
            check.same(a, b)
    assert ordinary[0]._version == ordinary[1]._version
    for f, t in zip((compiled, plain), made):
        with pytest.raises(RuntimeError, match="inference"):
            f(t)


def test_leaf_that_requires_grad(check):
    def fn(p, g):
        p.sub_(g, alpha=0.1)
        return p.sum()

    compiled = tenon.compile(fn)
    p, q = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
    with torch.no_grad():
        for _ in range(2):
            check.same(compiled(p, torch.ones(3)), fn(q, torch.ones(3)))
            check.same(p.detach(), q.detach())
    assert p._version == q._version and tenon.stats()["eager_fallbacks"] == 0
    for f, t in ((fn, q), (compiled, p)):
        with pytest.raises(RuntimeError, match="leaf"):
            f(t, torch.ones(3))


def test_callable_backends_get_update_values(graphs):
    def fn(x, y):
        x.add_(y)
        y[0] = 3
        return x * 2

    compiled = tenon.compile(fn, backend=graphs)
    x, y = torch.zeros(2), torch.ones(2)
    compiled(x, y)
    graph = graphs.seen[0]
    given = graph.forward(torch.zeros(2), torch.ones(2))
    assert len(given) == 3 and [t.tolist() for t in given] == [[2, 2], [1, 1], [3, 1]]
    assert x.tolist() == [1, 1] and y.tolist() == [3, 1]
    again = graph.to_fx()(torch.zeros(2), torch.ones(2))
    assert [t.tolist() for t in again] == [[2, 2], [1, 1], [3, 1]]
    assert "afterwards x takes" in graph.code()


@pytest.mark.parametrize("index", [[0, 1], torch.tensor([1, 2]), (slice(None), [1]), torch.ones(4) > 0, torch.ones(4, 3) > 0])
def test_values_of_another_dtype_under_indices_are_refused(index):
    def fn(x, value):
        x[index] = value

    compiled, value = tenon.compile(fn), torch.ones(3, dtype=torch.float64)
    for value in (value, value[:2], torch.ones(4, 1, dtype=torch.int64), torch.ones(12, dtype=torch.float64)):
        plain, ours = torch.zeros(4, 3), torch.zeros(4, 3)
        with torch.no_grad():
            with pytest.raises((RuntimeError, IndexError)) as expected:
                fn(plain, value)
            with pytest.raises(expected.type):
                compiled(ours, value)
        assert torch.equal(ours, plain)


def test_one_value_of_another_dtype_under_a_mask(writes):
    def fn(x, value):
        x[x > 0] = value
        x[1] = value

    writes(fn, torch.randn(4, 3), torch.ones(1, dtype=torch.float64), graphs=1)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.index_add_(0, x, x.clone()),
        lambda x: x.index_add_(0, x.clone(), x),
        lambda x: x.index_fill_(0, x, 0),
        lambda x: x.index_copy_(0, x, x.clone()),
        lambda x: x.scatter_(0, x, 1),
        lambda x: x.index_put_((x,), x.clone()),
        lambda x: torch.gather(x, 0, x, out=x),
        lambda x: torch.index_select(x, 0, x, out=x),
        lambda x: x.copy_(x),
        lambda x: x.add_(x),
        lambda x: torch.where(x > 1, x, -x, out=x),
    ],
)
def test_what_is_written_is_also_read(write):
    def outcome(call):
        x = torch.tensor([2, 1, 0])
        try:
            call(x)
        except RuntimeError as error:
            return str(error)
        return x.tolist()

    assert outcome(tenon.compile(write)) == outcome(write)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, at, values: x.index_put_((at,), values, accumulate=True),
        lambda x, at, values: x.index_add_(0, at, values),
        lambda x, at, values: x.scatter_add_(0, at[:, None].expand(3, 2), values),
        lambda x, at, values: x.mul_(values),
    ],
)
def test_complex_numbers_are_computed_by_torch(writes, write):
    def fn(x, at, values):
        write(x, at, values)
        return x[0]

    writes(fn, torch.arange(6).reshape(3, 2) * (1 + 2j), torch.tensor([0, 2, 0]), torch.full((3, 2), 2 - 1j))
