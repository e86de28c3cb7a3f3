"""Items of lists and tuples at a place that varies: inputs that vary, not constants of one variant each."""

import pytest

import tenon

torch = pytest.importorskip("torch")

N = 12
W = torch.linspace(-1, 1, 64).reshape(8, 8) / 4
X = torch.linspace(-2, 2, 32).reshape(4, 8)


def sampler(x, schedule, alphas, n):
    for i in range(n):
        t = schedule[i]
        x = torch.tanh(x @ W) * alphas[i] + x * (1 - alphas[i]) + t / 100
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
    return x


def reversed_sampler(x, schedule, alphas, n):
    for i in range(n):
        x = x * alphas[n - 1 - i] + schedule[-i - 1] / 100
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
    return x


SCHEDULES = {
    "numbers": ([900 - 70 * i for i in range(N)], [0.5 + i / 40 for i in range(N)]),
    "tensors": ([torch.tensor(float(i)) for i in range(N)], tuple(torch.full((8,), 0.5 + i / 50) for i in range(N))),
    "arrays of torch": (torch.arange(N).flip(0) * 10, torch.linspace(0.4, 0.9, N)),
    "one tensor again": ([torch.tensor(3.0)] * N, [torch.tensor(0.5 + (i % 3) / 10) for i in range(N)]),
}


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("program", [sampler, reversed_sampler])
def test_a_schedule_read_at_a_loop_s_counter_needs_few_variants(program, kind):
    schedule, alphas = SCHEDULES[kind]
    if program is reversed_sampler and kind == "arrays of torch":
        pytest.skip("torch places views from the end itself")
    tenon.reset()
    compiled = tenon.compile(program)
    with torch.no_grad():
        for n in (N, N, N - 3):
            torch.testing.assert_close(compiled(X, schedule, alphas, n), program(X, schedule, alphas, n))
    assert tenon.stats()["graphs"] <= 6, tenon.stats()




def check(fn, calls, most=None):
    tenon.reset()
    compiled = tenon.compile(fn)
    for args in calls:
        got, want = compiled(*args), fn(*args)
        assert type(got) is type(want)
        torch.testing.assert_close(got, want, rtol=0, atol=0)
    if most:
        assert tenon.stats()["recompiles"] + 1 <= most, tenon.stats()


def test_what_is_at_the_place_may_be_of_another_kind():
    mixed = [1.5, 7, torch.tensor(2.0), 2.5, 8, torch.arange(8.0), True, 9, 3.5, torch.tensor([[2.0]], dtype=torch.float64), 4.5, 10]
    check(lambda x, items, i: x * items[i], [(X, mixed, i) for i in (*range(12), *range(12))])


def test_a_place_out_of_range_raises():
    compiled = tenon.compile(lambda x, items, i: x * items[i])
    items = [0.5, 1.5, 2.5, 3.5, 4.5]
    for i in (2, 3, 4, -2, -3, -5):
        torch.testing.assert_close(compiled(X, items, i), X * items[i])
    for i in (5, 6, -6, 99):
        with pytest.raises(IndexError):
            compiled(X, items, i)
    items.append(7.5)
    torch.testing.assert_close(compiled(X, items, 5), X * 7.5)


def test_a_place_that_an_item_says():
    order = [5, 3, 4, 2, 6, 7]
    values = [i + 0.5 for i in range(8)]
    check(lambda x, i: x * values[order[i]] + order[i + 1 - 1], [(X, i) for i in (2, 3, 4, 5, 0, 1)], 5)


def test_an_item_that_is_also_given_otherwise_is_written():
    def fn(items, i, other):
        items[i].add_(1)
        return items[i] * other + items[2]

    tenon.reset()
    compiled = tenon.compile(fn)
    for i, j in ((2, 3), (3, 2), (4, 4), (5, 2), (2, 2), (6, 7), (7, 6), (5, 5)):
        mine, theirs = ([torch.full((3,), float(k)) for k in range(8)] for _ in range(2))
        torch.testing.assert_close(compiled(mine, i, mine[j]), fn(theirs, i, theirs[j]))
        torch.testing.assert_close(mine, theirs)


def test_an_item_that_was_replaced_before():
    def fn(x, items, i):
        items[3] = x.sum()
        return x * items[i], items[i + 1]

    tenon.reset()
    compiled = tenon.compile(fn)
    for i in (2, 3, 4, 5, 3, 2):
        mine, theirs = ([0.5 * k for k in range(8)] for _ in range(2))
        torch.testing.assert_close(compiled(X, mine, i), fn(X, theirs, i))
        torch.testing.assert_close(mine, theirs)


def test_an_item_that_is_returned_is_the_item():
    items = [float(k) * 1000.25 for k in range(8)]
    tensors = [torch.full((2,), float(k)) for k in range(8)]
    first, second = (tenon.compile(lambda x, items, i: (x + 1, items[i])) for _ in range(2))
    for i in (2, 3, 4, 5):
        assert first(X, items, i)[1] is items[i]
        assert second(X, tensors, i)[1] is tensors[i]


@pytest.mark.parametrize("view", [
    lambda a, i: a[i], lambda a, i: a[:, i % 2], lambda a, i: a.select(0, i), lambda a, i: a.narrow(0, i, 1)[0], lambda a, i: a[i : i + 1].view(2), lambda a, i: a[-1 - i], lambda a, i: a.t()[i % 2],
], ids=["item", "column", "select", "narrow", "slice", "from behind", "transposed"])
@pytest.mark.parametrize("write", [
    lambda v, b: v.fill_(4), lambda v, b: v.zero_(), lambda v, b: v.copy_(b.expand_as(v)), lambda v, b: v.__setitem__(..., 4), lambda v, b: torch.add(b.expand_as(v), 1, out=v), lambda v, b: v.data.fill_(3), lambda v, b: v.mul_(2),
], ids=["fill", "zero", "copy", "item", "out", "data", "part"])
def test_a_view_at_a_place_is_a_view_after_a_write_of_all_of_it(view, write):
    def fn(a, i, b):
        v = view(a, i)
        write(v, b)
        return v, a.sum()

    compiled = tenon.compile(fn)
    for i in range(6):
        a, b = torch.arange(12.0).view(6, 2), torch.tensor(7.0 + i)
        other = a.clone()
        (want, total), (got, our_total) = fn(a, i, b), compiled(other, i, b)
        torch.testing.assert_close((got, our_total, other), (want, total, a), rtol=0, atol=0)
        got.fill_(-1)
        want.fill_(-1)
        torch.testing.assert_close(other, a, rtol=0, atol=0)
