"""Results whose size only the run finds: they stay in the graph where nothing asks for the size."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

X = torch.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, 6.0], [7.0, -8.0, -9.0]])


def put(x):
    mask, y = x > 0, x.clone()
    y[mask] = y[mask] * 2 + x[mask]
    return y


def put_by_the_same_condition(x):
    y = x.clone()
    y[x > 0] = torch.exp(x[x > 0])
    y[~(x > 0)] /= 2
    return y


def put_rows(x):
    z = torch.stack([x, -x, x / 2], -1)
    z[x > 0] = z[x > 0].cos()
    z[..., 1:][x > 0] = torch.tensor([3.0, 4.0])
    return z


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x[x > 0] * 2,
        lambda x: torch.relu(x[x[:, 0] > 0] + 1),
        lambda x: x[:, x[0] > 0],
        lambda x: (x[x > 0].sum(), x[x > 0].max(), x[x[:, 0] > 0].mean(0)),
        lambda x: x[x[:, 0] > 0] @ torch.ones(3, 2),
        lambda x: x[x[:, 0] > 0].max(0),
        lambda x: torch.sort(x[x > 0]).values,
        lambda x: torch.zeros(9, dtype=x.dtype).index_add_(0, (x[0] > 0).nonzero()[:, 0], x[0][x[0] > 0]),
        lambda x: torch.cat([x[x > 0], x[x < 0]]),
        lambda x: torch.masked_select(x, x > 0) * 2,
        lambda x: torch.nonzero(x > 0),
        lambda x: torch.argwhere(x > 0),
        lambda x: torch.nonzero(x[0] > 0),
        lambda x: torch.nonzero(x > 0, as_tuple=True),
        lambda x: x[torch.where(x > 0)],
        lambda x: torch.unique((x / 4).round(), return_counts=True),
        lambda x: (x / 4).round().unique() + 1,
        lambda x: (x / 4).round().unique(sorted=False, return_inverse=True, return_counts=True),
        lambda x: torch.unique((x[0] / 4).round(), return_inverse=True),
        lambda x: torch.unique_consecutive(torch.sign(x), return_counts=True),
        lambda x: torch.unique((x / 4).round(), dim=0),
        lambda x: torch.unique(torch.sign(torch.stack([x, -x, x], 2)), dim=1, return_inverse=True, return_counts=True),
        lambda x: torch.unique_consecutive(torch.sign(x), dim=1, return_inverse=True),
        lambda x: torch.nonzero(x > 0) * 2 + 1,
        lambda x: x.T[x.T > 0] + 1,
        put,
        put_by_the_same_condition,
        put_rows,
    ],
)
def test_torch(check, fn):
    with torch.no_grad():
        check(fn, (X,), (-X,), (X + 3,), (X[:2],), fallbacks=None)
    assert tenon.stats()["graph_breaks"] == 0


def linear_light(x):
    y = np.stack([x, x / 2], axis=-1)
    bright = y > 0.04
    y[bright] = np.power((y[bright] + 0.055) / 1.055, 2.4)
    y[~bright] /= 12.92
    return y


@pytest.mark.parametrize(
    "fn",
    [
        linear_light,
        lambda x: x[x > 0] * 2,
        lambda x: x[x[:, 0] > 0].sum(axis=0),
        lambda x: np.flatnonzero(x > 0) + 1,
        lambda x: np.argwhere(x > 0),
        lambda x: np.nonzero(x[0] > 0),
        lambda x: np.unique(np.round(x / 4)),
        lambda x: np.unique(np.round(x / 4), return_counts=True),
        lambda x: np.unique(np.round(x / 4), return_index=True, return_inverse=True, return_counts=True),
    ],
)
def test_numpy(check, fn):
    check(fn, (X.numpy(),), (-X.numpy(),), fallbacks=0)
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("fn", [lambda x: np.nonzero(x > 0), lambda x: x[:, x[0] > 0] * 2])
def test_layouts_that_only_numpy_knows_break(check, fn):
    check(fn, (X.numpy(),))


def test_one_graph_serves_all_counts():
    fn = tenon.compile(lambda x: x[x > 0] + 1)
    for threshold in range(-9, 7):
        torch.testing.assert_close(fn(X - threshold), (lambda x: x[x > 0] + 1)(X - threshold))
    assert tenon.stats()["graphs"] == 1 and tenon.stats()["eager_fallbacks"] == 0


def test_nothing_found_runs_as_plain_python(check):
    check(lambda x: (x[x > 100] + 1, x[x > 100].sum()), (X,), fallbacks=2)


def test_a_maximum_of_nothing_raises():
    fn = tenon.compile(lambda x: x[x > 0].max())
    assert fn(X) == 9 - 2
    with pytest.raises(RuntimeError, match="numel"):
        fn(-X.abs())


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x[x > 0].shape[0] + x.sum(),
        lambda x: len(x[x > 0]) * x,
        lambda x: x[x > 0][None].squeeze() + 1,
        lambda x: x[x > 0] + x[x != 0],
        lambda x: x[x > 0].cumsum_(0),
        lambda x: x[x > 0].stride() + x.stride(),
        lambda x: torch.fft.fft(x[x > 0]).abs(),
    ],
)
def test_a_size_that_is_asked_for_breaks(check, fn):
    x = X.abs() + 0.5
    check(fn, (x,), fallbacks=None)
    assert tenon.stats()["graph_breaks"] > 0


def test_plain_values_of_a_masked_result_need_no_size(check):
    check(lambda x: (x[x > 0].dtype, x[x > 0].dim(), x[x > 0].is_contiguous(), x + 1), (X,))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize(
    "write",
    [
        lambda y, v: y.__setitem__(y > 0, v),
        lambda y, v: y.__setitem__((slice(None), y[0] > 0), 5.0),
        lambda y, v: y.__setitem__((..., y[0] > 0), v[:3, None]),
        lambda y, v: y.__setitem__((y[:, 0] > 0, 1), v[:2]),
        lambda y, v: y.__setitem__(y[:, 0] > 0, v[:3]),
        lambda y, v: y.__setitem__(y[:, 0] > 0, v[:2, None]),
        lambda y, v: y.index_put_((y > 0,), v),
        lambda y, v: y.index_put_((y > 0,), v[0], accumulate=True),
    ],
)
def test_writes_through_a_mask_need_no_size(check, write):
    def fn(x, v):
        y = x * 2
        write(y, v)
        return y + 1

    check(fn, (X, torch.arange(5.0)))
    assert tenon.stats()["graph_breaks"] == 0


def multiplied(y, v):
    y[y > 0] *= 3


def added(y, v):
    y[y > 0] += v.sum()


def changed_apart(y, v):
    some = y[y > 0]
    same = some.mul_(2).add_(1)
    y += (some is same) + some.sum()


@pytest.mark.parametrize("write", [multiplied, added, changed_apart, lambda y, v: y.__setitem__(v[0] == 0, 3.0), lambda y, v: y.__setitem__(v.sum() < 0, v[:1])])
def test_writes_in_place_of_what_a_mask_chooses(check, write):
    def fn(x, v):
        y = x * 2
        write(y, v)
        return y, y[0].sum() + 1

    check(fn, (X, torch.arange(5.0)))
    assert tenon.stats()["graph_breaks"] == 0


def test_a_write_to_a_number_that_a_mask_of_none_or_one_chooses(check):
    def fn(x):
        y = x.sum()
        y[y > 0] = 3.0
        return y + 1

    check(fn, (X,), (-X,))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("count", [2, 7])
def test_a_wrong_number_of_elements_raises_as_eagerly(count):
    def fn(x, v):
        y = x * 2
        y[y > 0] = v
        return y

    with pytest.raises((RuntimeError, IndexError)) as want:
        fn(X, torch.ones(count))
    with pytest.raises(want.type, match="shape mismatch"):
        tenon.compile(fn)(X, torch.ones(count))


def both(choose, view):
    def fn(x):
        some = choose(x)
        part = view(some)
        return some, part, part + 1

    return fn


def with_one(x):
    """`x` with one positive element, the first of its second row."""
    y = -np.ones_like(x) if isinstance(x, np.ndarray) else -torch.ones_like(x)
    y[1, 0] = 2.0
    return y


VIEWS = [
    lambda t: t.view(-1, 1),
    lambda t: t[:, None],
    lambda t: t[..., 0],
    lambda t: t.unsqueeze(0).squeeze(0),
    lambda t: t.T,
    lambda t: t[1:],
    lambda t: t[:-1],
    lambda t: t[:2],
    lambda t: t[::2],
    lambda t: t[..., 1:],
    lambda t: t[0],
    lambda t: t[-1],
    lambda t: t.flatten(),
    lambda t: t.unsqueeze(1).expand(-1, 2, *t.shape[1:1], *([-1] * (t.dim() - 1))),
    lambda t: t[:, 1:].T.unsqueeze(-1),
    lambda t: t.transpose(0, -1).contiguous(),
]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("choose", [lambda x: x[x > 0], lambda x: x[x[:, 0] > 0], lambda x: x.nonzero()])
def test_views_of_results_of_a_late_size_are_views(view, choose):
    fn = both(choose, view)
    with torch.no_grad():
        try:
            fn(X)
        except (IndexError, RuntimeError):
            pytest.skip("eager execution refuses it")
        compiled = tenon.compile(fn)
        for x in (X, -X, X + 3, with_one(X), X):
            try:
                want = fn(x)
            except (IndexError, RuntimeError) as error:
                with pytest.raises(type(error)):
                    compiled(x)
                continue
            got = compiled(x)
            for one, other in zip(got, want):
                assert (one.stride(), one.storage_offset()) == (other.stride(), other.storage_offset())
                torch.testing.assert_close(one, other)
            assert (got[0].data_ptr() == got[1].data_ptr()) == (want[0].data_ptr() == want[1].data_ptr())


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x[x > 0].view(-1, 1) * x[0],
        lambda x: (lambda some: some[:, None] - some[None, :])(x[x > 0]),
        lambda x: (lambda at: at[:, 0] + at[:, 1])(x.nonzero()),
        lambda x: (lambda b: (b[:, 1:] - b[:, :2]).sum(1))(x[x[:, 0] > 0]),
        lambda x: (lambda b: torch.minimum(b[:, None, 1:], b[None, :, 1:]))(x[x[:, 0] > 0]),
        lambda x: (lambda b: torch.stack([b[:, 0] - b[:, 2] / 2, b[:, 1]], 1))(x[x[:, 0] > 0]),
        lambda x: sum(x[x[:, 0] > 0].unbind(1)),
        lambda x: [part * 2 for part in x[x[:, 0] > 0].split([1, 2], 1)],
        lambda x: x[x[:, 0] > 0].T * 2,
        lambda x: x[x > 0].reshape(-1, 1, 1).flatten() + 1,
        lambda x: x[x > 0][-1] + x[x > 0][0],
    ],
)
def test_arithmetic_with_views_of_results_of_a_late_size_breaks_nothing(check, fn):
    with torch.no_grad():
        check(fn, (X,), (X + 3,), (X[:2] + 3,), fallbacks=None)
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x[x > 0][:, None] * x[0],
        lambda x: x[x > 0].reshape(-1, 1),
        lambda x: (lambda at: at[1:] - at[:-1])(np.flatnonzero(x > 0)),
        lambda x: np.argwhere(x > 0)[:, 0] + 1,
        lambda x: x[x[:, 0] > 0].T,
        lambda x: x[x[:, 0] > 0][:, ::-1],
        lambda x: (lambda some: np.where(some > 2, some, 0.0))(x[x > 0]),
        lambda x: np.concatenate([x[x > 0], x[x > 1]]),
        lambda x: np.sort(x[x > 0]),
    ],
)
def test_views_of_arrays_of_a_late_size_break_nothing(check, fn):
    check(fn, (X.numpy(),), (X.numpy() + 3,), fallbacks=0)
    assert tenon.stats()["graph_breaks"] == 0


def test_one_element_is_as_good_as_several():
    fn = tenon.compile(lambda x: (x[x > 0][:, None] * 2, x[x > 0][-1:].T))
    for x in (X, with_one(X)):
        assert [t.shape for t in fn(x)] == [((x > 0).sum(), 1), (1,)]
    assert tenon.stats()["graphs"] == 1 and tenon.stats()["eager_fallbacks"] == 0


def first(y):
    y[0] = 5.0
    return y[1:].mul_(3)


def columns(y):
    y[:, 1:] += 1
    return y[0].add_(2)


def base_of_a_view(y):
    column = y[:, None]
    y.mul_(2)
    return column


def out(y):
    torch.mul(y[:, 1:], 2, out=y[:, 1:])
    return y[0]


@pytest.mark.parametrize(("choose", "write"), [(0, first), (1, first), (1, columns), (0, base_of_a_view), (1, base_of_a_view), (1, out)])
def test_writes_to_parts_of_results_of_a_late_size(check, choose, write):
    def fn(x):
        y = x[x[:, 0] > 0] if choose else x[x > 0]
        part = write(y)
        return y, part, y.sum() + part.sum()

    with torch.no_grad():
        check(fn, (X,), (X + 3,), fallbacks=0)
        got = tenon.compile(fn)(X)
    assert got[0].untyped_storage().data_ptr() == got[1].untyped_storage().data_ptr()
    assert tenon.stats()["graph_breaks"] == 0


def test_a_view_of_an_input_has_the_strides_of_each_call():
    fn = tenon.compile(lambda x: x.chunk(1, -1)[0])
    for step in (3, 4, 5, 3):
        x = torch.arange(30.0).as_strided((3,), (step,))
        fn(x + 0), fn(x)
        assert fn(x).stride() == (step,)


def test_sizes_that_keep_being_0_break_the_graph():
    def fn(x):
        found = x[x > 2] * 2
        return found, torch.cat([found, x]).sum()

    compiled = tenon.compile(fn)
    empty, some = torch.ones(5), torch.full((5,), 3.0)
    for x in (some, empty, empty, empty, some, empty, some):
        torch.testing.assert_close(compiled(x), fn(x))
    fallbacks = tenon.stats()["eager_fallbacks"]
    graphs = tenon.stats()["graphs"]
    for x in (some, empty):
        torch.testing.assert_close(compiled(x), fn(x))
    assert fallbacks == 2 and (tenon.stats()["eager_fallbacks"], tenon.stats()["graphs"]) == (fallbacks, graphs)
