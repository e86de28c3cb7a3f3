"""Integers that vary from call to call, as arguments, read from objects, and born of sizes."""

import math

import pytest

import tenon

torch = pytest.importorskip("torch")


def check(fn, calls, most, compare=None, **options):
    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True, **options)
    with torch.no_grad():
        for args in calls:
            for _ in range(2):
                got, want = compiled(*args), fn(*args)
                assert type(got) is type(want)
                if isinstance(want, torch.Tensor):
                    assert got.shape == want.shape and got.stride() == want.stride() and got.dtype == want.dtype
                    torch.testing.assert_close(got, want)
                else:
                    assert got == want and repr(got) == repr(want)
    stats = tenon.stats()
    assert stats["recompiles"] + 1 <= most, stats
    assert stats["eager_fallbacks"] == 0, stats
    return compiled


X = torch.arange(24.0).reshape(4, 6)
INTS = [5, 7, 2, 19, 3, 100]


def test_an_argument_as_operand():
    check(lambda x, n: x * n + n, [(X, n) for n in INTS], 2)


def test_zero_one_and_negatives_are_apart():
    check(lambda x, n: x * n + n, [(X, n) for n in (5, 7, 0, 1, -3, -8, -20, 9)], 5)


def test_an_argument_as_size():
    check(lambda x, n: torch.zeros(n, 3) + n, [(X, n) for n in INTS], 2)
    check(lambda x, n: torch.full((2, n), 1.5), [(X, n) for n in INTS], 2)
    check(lambda x, n: torch.arange(n) * 2, [(X, n) for n in INTS], 2)
    check(lambda x, n: x[:1].expand(n, 6) * 2, [(X, n) for n in INTS], 2)


def test_an_argument_as_slice_bound():
    x = torch.randn(128, 4)
    check(lambda x, n: x[:n] * 2, [(x, n) for n in INTS], 2)
    check(lambda x, n: x[n:] * 2, [(x, n) for n in INTS], 2)
    check(lambda x, n: x[n] * 2, [(x, n) for n in INTS], 2)
    check(lambda x, n: x.narrow(0, 1, n) + 1, [(x, n) for n in INTS], 2)


def test_a_slice_bound_on_either_side_of_the_size():
    x = torch.randn(10, 4)
    check(lambda x, n: x[:n] * 2, [(x, n) for n in (3, 5, 8, 10, 12, 20, 7)], 3)


def test_sizes_as_numbers():
    calls = [(torch.randn(n, 6),) for n in (4, 5, 9, 30)]
    check(lambda x: x / x.shape[0], calls, 2)
    check(lambda x: x * len(x), calls, 2)
    check(lambda x: x + x.size(0) + x.size(-1), calls, 2)
    check(lambda x: x.sum() / x.numel(), calls, 2)
    check(lambda x: x.view(x.size(0), 2, 3).sum(1), calls, 2)
    check(lambda x: x.reshape(x.shape[0] * 2, -1) + 1, calls, 2)
    check(lambda x: torch.ones(x.shape) + x, calls, 2)
    check(lambda x: torch.zeros_like(x) + x.new_ones(x.shape), calls, 2)


def test_numbers_among_the_results():
    calls = [(torch.randn(n, 6),) for n in (4, 5, 9, 30)]
    for fn in (lambda x: x.shape[0], lambda x: len(x) * 3 + 1, lambda x: x.shape[0] // 2, lambda x: x.numel() % 7, lambda x: -x.size(0)):
        check(fn, calls, 2)
    tenon.reset()
    compiled = tenon.compile(lambda x: (x + 1, x.shape, [x.shape[0] + 2]))
    for (x,) in calls:
        y, shape, (n,) = compiled(x)
        assert shape == x.shape and type(shape) is torch.Size and type(shape[0]) is int and n == len(x) + 2 and type(n) is int
    assert tenon.stats()["recompiles"] == 1


def test_types_of_numbers():
    def fn(x):
        n = x.shape[0]
        ok = isinstance(n, int) and type(n) is int and n.__class__ is int and isinstance(n, (float, int)) and not isinstance(n, bool)
        return x + 1 if ok else x - 1

    check(fn, [(torch.randn(n, 2),) for n in (4, 5, 9)], 2)


def test_branches_are_guarded_by_the_relation():
    def fn(x):
        return x * 2 if x.shape[0] > 8 else x - 1

    check(fn, [(torch.randn(n, 2),) for n in (4, 5, 6, 7, 3, 9, 20, 30, 8, 12)], 3)

    def equal(x, y):
        return x.sum() + y.sum() if x.shape[0] == y.shape[0] else x.sum() - y.sum()

    check(equal, [(torch.randn(a), torch.randn(b)) for a, b in ((3, 3), (4, 4), (5, 5), (3, 4), (6, 7), (8, 8))], 3)

    def even(x):
        return x * 2 if x.shape[0] % 2 == 0 else x * 3

    check(even, [(torch.randn(n),) for n in (3, 4, 5, 6, 7, 8, 12, 15)], 3)


KEYS = {10: 1, 20: 2, "a": 3, None: 4, 5.0: 6}


def test_a_key_that_is_not_there_needs_no_value():
    check(lambda x, n: x * 2 if n in KEYS else x + n, [(X, n) for n in (2, 3, 4, 10, 6, 7, 20, 8, 9, 5)], 5)
    check(lambda n: (n in {7, 90}, n not in frozenset((33,)), KEYS.get(n, 7), n in dict(KEYS)), [(n,) for n in (2, 3, 4, 6, 8, 9, 11)], 2)

    def write(n, x):
        made, found = {1: 2, 40: 1}, {3}
        if n not in made:
            made[n] = n
        found.add(n)
        return made, found, [type(key) for key in (*made, *found)], n in made, n in found

    check(write, [(n, X) for n in (2, 3, 4, 5, 40)], 6)
    later = {10: 1}
    compiled = check(lambda n: n in later, [(n,) for n in (2, 3, 4)], 2)
    later[4] = 1
    assert compiled(4) and not compiled(5)


def test_a_power_modulo_a_number():
    check(lambda x, n: x + pow(n, 3, 7) + pow(2, n, 5), [(torch.ones(2), n) for n in (3, 4, 5)], most=4)


def test_a_long_list_of_a_number_has_no_operand_an_item():
    for length in (3, 2000):
        seen = []
        compiled = tenon.compile(lambda n, length=length: torch.tensor([n] * length) * 2, backend=lambda graph, inputs: seen.append(graph) or graph.forward)
        for n in (3, 5, 7, 9):
            assert torch.equal(compiled(n), torch.full((length,), 2 * n))
        assert seen and all(len(str(graph)) < 1000 for graph in seen)


def test_uses_as_a_plain_int_specialise():
    def fn(x):
        total = x
        for i in range(x.shape[0]):
            total = total + i
        return total

    tenon.reset()
    compiled = tenon.compile(fn)
    for n in (3, 4, 5, 4, 3, 5):
        x = torch.randn(n)
        torch.testing.assert_close(compiled(x), fn(x))
    assert tenon.stats()["recompiles"] == 2


@pytest.mark.parametrize("use", [
    lambda x, n: x + ("ab" * n).count("a"), lambda x, n: x + [10, 20, 30, 40, 50, 60][n], lambda x, n: x + {3: 1.0, 4: 2.0, 5: 5.0}[n],
    lambda x, n: x + len(f"{n:>5}|{n}"), lambda x, n: x + math.sqrt(n), lambda x, n: x + n ** 3, lambda x, n: x + (n & 3) + (n << 1),
    lambda x, n: x + hash(n), lambda x, n: x + n.bit_length(), lambda x, n: x + float(n), lambda x, n: x + n / 2, lambda x, n: x + max(n, 4),
    lambda x, n: x + sum([n, n, 1]), lambda x, n: x + (n in (3, 5)), lambda x, n: x + divmod(n, 2)[1], lambda x, n: x + abs(-n), lambda x, n: x + int(n),
    lambda x, n: x + (not n), lambda x, n: x + str(n).count("4"), lambda x, n: x + sorted([n, 4, 2])[1], lambda x, n: x + round(n), lambda x, n: x + ~n,
])
def test_any_use_gives_what_it_gives_on_ints(use):
    tenon.reset()
    compiled = tenon.compile(use)
    for n in (3, 4, 5, 4, 3, 5):
        torch.testing.assert_close(compiled(X, n), use(X, n))


def test_numbers_read_from_objects():
    class Box:
        pass

    box, scale = Box(), {"k": 3}
    box.n = 3

    def fn(x):
        return x * box.n + scale["k"]

    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True)
    for n in (3, 4, 9, 12, 30):
        box.n, scale["k"] = n, n + 1
        torch.testing.assert_close(compiled(X), fn(X))
    assert tenon.stats()["recompiles"] == 1


def test_an_integer_of_more_than_64_bits_leaves_the_symbols():
    def fn(x, n):
        return x + float(n * n * n)

    def size(n):
        return n * n * n

    tenon.reset()
    compiled, plain = tenon.compile(fn), tenon.compile(lambda x, n: (x + 1, n * n * n))
    for n in (3, 5, 2**31, 2**62, 2**70, 7):
        torch.testing.assert_close(compiled(X, n), fn(X, n))
        assert plain(X, n)[1] == size(n)


def test_the_log_names_relation_and_values(capfd):
    tenon.reset()
    tenon.set_logs(recompiles=True, guards=True)
    try:
        compiled = tenon.compile(lambda x, y: x + y if x.shape[0] < 10 else x - y)
        for n in (4, 5, 12):
            compiled(torch.randn(n), torch.randn(n))
    finally:
        tenon.set_logs()
    err = capfd.readouterr().err
    assert "2 <= x.shape[0]" in err
    assert "y.shape[0] == x.shape[0]" in err or "x.shape[0] == y.shape[0]" in err
    assert "x.shape[0] < 10: x.shape[0] was 5, is 12" in err


@pytest.mark.parametrize("view", [lambda x, n: x[:, n], lambda x, n: x[n], lambda x, n: x[0, n:], lambda x, n: x.flatten()[n], lambda x, n: x.t()[n]])
def test_a_view_of_an_argument_at_a_varying_place(view):
    x = torch.arange(40.0).reshape(8, 5)
    calls = [(x, n) for n in (2, 3, 4, 2)]
    compiled = check(view, calls, 3)  # x[0, n:] may come to lie in one piece
    for x, n in calls:
        assert compiled(x, n).data_ptr() == view(x, n).data_ptr()


def test_views_at_the_counter_of_a_loop_with_breaks():
    def fn(x):
        seen = []
        for step in range(6):
            part = x[:, step]
            tenon.graph_break()
            seen.append(part * 2)
        return torch.stack(seen)

    x, compiled = torch.arange(24.0).reshape(4, 6), tenon.compile(fn)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), fn(x))
