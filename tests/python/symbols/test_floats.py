"""Floats that vary from call to call, and numbers born of tensors: inputs of the graph, never constants."""

import datetime
import decimal
import fractions
import math

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

X = torch.linspace(-2, 2, 24).reshape(4, 6)
FLOATS = [0.5, 2.5, -3.25, 0.0, 1.0, 1e-3, 7.75, float("inf")]


def check(fn, calls, most, **options):
    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True, **options)
    with torch.no_grad():
        for args in calls:
            for _ in range(2):
                got, want = compiled(*args), fn(*args)
                assert type(got) is type(want)
                if isinstance(want, torch.Tensor):
                    assert got.shape == want.shape and got.dtype == want.dtype
                    torch.testing.assert_close(got, want, equal_nan=True)
                else:
                    assert got == want
    stats = tenon.stats()
    assert stats["recompiles"] + 1 <= most, stats
    assert stats["eager_fallbacks"] == 0, stats


@pytest.mark.parametrize("fn", [
    lambda x, s: x * s, lambda x, s: s - x, lambda x, s: torch.where(x > s, x, s), lambda x, s: x.to(torch.float64) + s, lambda x, s: (x * 3).long() * s,
    lambda x, s: x + (s * 2 + 1), lambda x, s: x * -s, lambda x, s: torch.maximum(x, x * s) - s / 4,
])
def test_a_float_argument_becomes_an_input(fn):
    check(fn, [(X, s) for s in FLOATS], 2)
    check(fn, [(X, s) for s in FLOATS], 1, dynamic=True)


def test_a_float_that_decides_is_a_constant():
    def fn(x, s):
        return x * s if s > 1 else x - s

    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True)
    for s in (0.5, 2.5, 0.75, 2.5, 0.5):
        torch.testing.assert_close(compiled(X, s), fn(X, s))
    assert tenon.stats()["recompiles"] == 2


def test_a_float_read_from_an_object():
    class Schedule:
        rate = 0.1

    schedule = Schedule()
    schedule.rate = 0.1

    def fn(x):
        return x - schedule.rate * x.sign()

    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True)
    for step in range(1, 6):
        schedule.rate = 0.1 / step
        torch.testing.assert_close(compiled(X), fn(X))
    assert tenon.stats()["recompiles"] == 1


def test_a_float_that_is_returned():
    check(lambda x, s: (x.sum() * 0, s * 2 + 1)[1], [(X, s) for s in (0.5, 2.5, 3.5, 4.5)], 2)


def test_numbers_born_of_tensors_stay_in_the_graph():
    calls = [(X * k,) for k in (1.0, -2.0, 3.5)]
    check(lambda x: x / x.max().item(), calls, 1)
    check(lambda x: x / x.max().item() + float(x.min()), calls, 1)
    check(lambda x: (x * 3).long() * int((x * 5).long().sum()), calls, 1)
    check(lambda x: x * x.max().item() + x.sum().item() * 2, calls, 1)
    check(lambda x: (x.max().item() * 2, x + 1)[0], calls, 1)


def test_a_branch_on_a_number_born_of_a_tensor_is_right():
    def fn(x):
        k = x.max().item()
        return x / k if k > 1 else x - k

    tenon.reset()
    compiled = tenon.compile(fn)
    for k in (1.0, 0.1, 5.0, -1.0):
        torch.testing.assert_close(compiled(X * k), fn(X * k))


def test_numpy_scalars_and_items():
    import numpy as np

    a = np.linspace(-1, 1, 12).reshape(3, 4)
    tenon.reset()
    compiled = tenon.compile(lambda a, s: (a - s) / a.max().item(), fullgraph=True)
    for s in (0.5, 1.5, 2.5, 0.25):
        np.testing.assert_allclose(compiled(a + s, s), (a + s - s) / (a + s).max().item())
    assert tenon.stats()["recompiles"] == 1


def test_functions_of_numbers_born_of_tensors_stay_in_the_graph():
    import math

    calls = [(X * k,) for k in (1.0, 2.0, 3.5)]
    check(lambda x: x * (0.9 ** x.max().item()), calls, 1)
    check(lambda x: x * (x.max().item() ** 0.5) - x.max().item() ** 2, calls, 1)
    check(lambda x: x / math.sqrt(x.max().item()) + math.log(x.max().item()), calls, 1)


@pytest.mark.parametrize("done", [True, False])
def test_bools_count_as_ints_beside_numbers_that_vary(done):
    def fn(x, f):
        number = x.sum().item()
        return number * done + f * (not done) - done, f + done, done * f, (number + done) / 2, x * (f * done)

    compiled = tenon.compile(fn)
    for f in (0.5, 1.5, 2.5, 3.5):
        x = torch.tensor([f, 2.0])
        assert repr(compiled(x, f)) == repr(fn(x, f))
    assert tenon.stats()["graph_breaks"] == 0 and tenon.stats()["recompiles"] <= 2, tenon.stats()


def test_functions_of_numbers_raise_as_in_eager():
    import math

    x = torch.tensor([-2.0])
    for fn in (lambda x: x * math.sqrt(x.max().item()), lambda x: x * 0.0 ** x.max().item(), lambda x: x * (-1e300 * x.max().item()) ** 2):
        compiled = tenon.compile(fn)
        for _ in range(2):
            with pytest.raises(Exception) as want:
                fn(x)
            with pytest.raises(type(want.value)):
                compiled(x)


@pytest.mark.parametrize("number", [2, 2.5])
@pytest.mark.parametrize("operator", ["+=", "-=", "*=", "/=", "//=", "%=", "**="])
@pytest.mark.parametrize("make", [torch.Tensor.clone, torch.Tensor.numpy], ids=["tensor", "array"])
def test_an_operator_in_place_writes_with_a_number_that_varies(make, operator, number):
    scope = {}
    exec(f"def fn(x, s):\n    x {operator} s\n    return x", scope)  # noqa: S102
    compiled = tenon.compile(scope["fn"], dynamic=True)
    for s in (number, number + 1, number + 2):
        mine, theirs = make(X.abs().clone()), make(X.abs().clone())
        assert compiled(mine, s) is mine
        scope["fn"](theirs, s)
        torch.testing.assert_close(torch.as_tensor(mine), torch.as_tensor(theirs))


def made_of_an_int():
    import math

    return [
        lambda x, n: x * (n / 3), lambda x, n: x * (0.9**n), lambda x, n: x * n**0.5, lambda x, n: x * (2.5 * n - 1 / n),
        lambda x, n: x * min(1.0, n / 5) - max(0.2, 1 - n / 10), lambda x, n: x * (1 + math.cos(math.pi * n / 10)),
        lambda x, n: x.sub(x, alpha=n / 3), lambda x, n: (x, n / 7, n * 1.5, 2.0 - n)[1:],
    ]


@pytest.mark.parametrize("fn", made_of_an_int())
def test_floats_made_of_an_int_that_varies(fn):
    check(fn, [(X, n) for n in range(2, 9)], 2)


def test_floats_made_of_an_int_that_varies_decide_and_raise_as_in_eager():
    def fn(x, n):
        return x * (12 / (n - 5)) if n / 3 > 1.5 else x * int(n * 0.75)

    compiled = tenon.compile(fn)
    for n in (2, 3, 4, 6, 7, 9):
        torch.testing.assert_close(compiled(X, n), fn(X, n))
    with pytest.raises(ZeroDivisionError):
        compiled(X, 5)


def test_sizes_as_floats_and_in_means():
    calls = [(torch.arange(2.0 * n).reshape(2, n),) for n in range(3, 9)]
    check(lambda x: x.sum() / x.shape[1], calls, 2)
    check(lambda x: x / x.shape[1] ** 0.5, calls, 2)


def test_large_ints_are_divided_exactly():
    compiled = tenon.compile(lambda x, n: (x + 1, n / 3, n * 0.5)[1:])
    for n in (3, 4, 10**17 + 1, 2**53 + 1, 10**30 + 7):
        assert compiled(X, n) == (n / 3, n * 0.5)


def test_floats_in_what_a_loop_goes_over():
    groups = [{"rate": 0.5, "power": (1.5, 2.5)}, {"rate": 0.25, "power": (2.5, 3.5)}]

    def fn(x):
        for group in groups:
            first, second = group["power"]
            x = x * group["rate"] + first / second
        return x

    compiled = tenon.compile(fn, fullgraph=True)
    for k in range(1, 6):
        groups[0]["rate"], groups[1]["power"] = 0.5 / k, (2.5 * k, 3.5)
        torch.testing.assert_close(compiled(X), fn(X))
    assert tenon.stats()["recompiles"] <= 2
    groups[1] = {"rate": 3.0, "power": (1.0, 2.0)}
    torch.testing.assert_close(compiled(X), fn(X))
    groups.append({"rate": 2.0, "power": (1.0, 4.0)})
    torch.testing.assert_close(compiled(X), fn(X))


def test_c_code_that_takes_only_real_numbers():
    def fn(x, n):
        share = n / 7
        return x * round(share, 1) * math.trunc(share + 5), decimal.Decimal(share), datetime.timedelta(seconds=share)

    compiled, x = tenon.compile(fn), torch.ones(3)
    for n in (3, 4, 5, 6):
        got, want = compiled(x, n), fn(x, n)
        assert torch.equal(got[0], want[0]) and got[1:] == want[1:]


@pytest.mark.parametrize("kind", (complex, decimal.Decimal, fractions.Fraction, lambda value: bool(value - 0.5), np.float64, np.float32))
def test_comparisons_with_other_kinds_of_numbers(kind):
    def fn(x, s, other):
        return x * s, s == other, other == s, s != other, other in (s,)

    compiled = tenon.compile(fn)
    for s in FLOATS[:5] + [1.5]:
        got, want = compiled(X, s, kind(s)), fn(X, s, kind(s))
        assert torch.equal(got[0], want[0]) and got[1:] == want[1:]
