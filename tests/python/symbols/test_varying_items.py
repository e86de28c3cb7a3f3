"""Numbers in older tuples, lists and dicts, and numbers that go into new tensors: what varies there is a symbol, not a variant."""
import random

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

X = torch.rand(3, 40, 48)


def kept(x, *, size, scale=1.0, **rest):
    return x[:, : size[0], : size[1]] * scale


READS = {
    "keywords": lambda x, p: kept(x, **p),
    "merged keywords": lambda x, p: kept(x, **{"other": 1}, **p),
    "dict display": lambda x, p: kept(x, **{**p, "more": 2}),
    "list": lambda x, p: x[:, : list(p["size"])[0]] + 1,
    "tuple of a list": lambda x, p: x[:, : tuple(list(p["size"]))[1]] + 1,
    "sum": lambda x, p: x[:, : sum(p["size"]) // 2] + 1,
    "equal": lambda x, p: x if p["size"] == (40, 48) else x[:, : p["size"][0]] + 1,
    "unequal": lambda x, p: x if (1, 2) != p["size"] else x - 1,
    "kept in a dict": lambda x, p: x * dict(kept=p["factors"], other=[1])["kept"][0] + p["factors"][1],
    "tensor": lambda x, p: x + torch.tensor(p["factors"])[1],
    "joined": lambda x, p: torch.zeros(p["size"] + (2,)),
    "repeated": lambda x, p: torch.ones(p["size"] * 2),
    "contained": lambda x, p: x * p["size"][0] if 100 in p["size"] else x + p["size"][1],
}


@pytest.mark.parametrize("name", READS)
def test_numbers_of_an_older_sequence_vary_each_by_itself(name):
    fn, draw = READS[name], random.Random(3)
    compiled = tenon.compile(fn)
    for _ in range(40):
        p = {"size": (draw.randint(2, 39), draw.randint(2, 47)), "scale": draw.uniform(1, 2), "factors": [draw.random(), draw.random()]}
        torch.testing.assert_close(compiled(X, p), fn(X, p), rtol=1e-6, atol=1e-6)
    stats = tenon.stats()
    assert stats["graphs"] <= 4 and stats["eager_fallbacks"] == 0, stats


def test_the_parts_keep_what_they_are():
    def fn(t, l, d):
        seen = dict(**d)
        return tuple(t) is t, tuple(l) is l, list(l) is l, t + () is t, t * 1 is t, seen["inner"] is d["inner"], seen == d, list(seen)

    compiled = tenon.compile(fn)
    for n in range(4):
        arguments = ((n, n + 1), [n, 2.5], {"inner": [n], "b": n, "a": 1})
        assert compiled(*arguments) == fn(*arguments)


def test_a_list_that_is_written_after_it_was_copied():
    def fn(l, x):
        copy = list(l)
        l[0] = 100
        return copy, l, x * copy[0], sum(l)

    compiled = tenon.compile(fn)
    for n in range(5):
        mine, theirs = [n, n + 1], [n, n + 1]
        a, b = compiled(mine, X), fn(theirs, X)
        assert a[0] == b[0] and a[1] is mine and mine == theirs and a[3] == b[3]
        torch.testing.assert_close(a[2], b[2])


MADE = {
    "tensor": lambda a, b, n: torch.tensor([a, b]),
    "matrix": lambda a, b, n: torch.tensor([[a, -b, 0.0], [b, a, 1]], dtype=torch.float64),
    "scalar": lambda a, b, n: torch.tensor(a) * 2,
    "mixed": lambda a, b, n: torch.as_tensor([a, n]) * 2,
    "full": lambda a, b, n: torch.full((n,), a) + torch.zeros(n),
    "linspace": lambda a, b, n: torch.linspace(a, b + 2, n),
    "centred": lambda a, b, n: torch.linspace((1.0 - n) / 2, (n - 1.0) / 2, steps=n),
    "window": lambda a, b, n: torch.hann_window(n).sum() * a,
}


@pytest.mark.parametrize("name", MADE)
def test_tensors_made_of_numbers_that_vary(name):
    fn, draw = MADE[name], random.Random(5)
    compiled = tenon.compile(fn)
    for _ in range(30):
        arguments = (draw.uniform(0, 1), draw.uniform(0, 1), draw.randint(2, 40))
        got, want = compiled(*arguments), fn(*arguments)
        assert got.dtype == want.dtype and got.stride() == want.stride()
        torch.testing.assert_close(got, want)
    stats = tenon.stats()
    assert stats["graphs"] <= 2 and stats["eager_fallbacks"] == 0, stats


def test_a_view_by_the_product_of_sizes_that_were_made_equal():
    def fn(x, h, w):
        return x.reshape(3, h * w).sum(0) + torch.ones(h * w)

    compiled, draw = tenon.compile(fn), random.Random(1)
    for _ in range(30):
        h, w = draw.randint(2, 30), draw.randint(2, 30)
        x = torch.rand(3, h, w)
        torch.testing.assert_close(compiled(x, h, w), fn(x, h, w))
    assert tenon.stats()["graphs"] <= 4, tenon.stats()


def one_size(x, tensors):
    sizes = {tuple(t.shape[-2:]) for t in tensors}
    if not sizes:
        raise TypeError("none")
    if len(sizes) > 1:
        raise ValueError(f"{sorted(sizes)}")
    h, w = sizes.pop()
    return x[:, : h // 2, : w // 2] + len(sizes)


def added(x, tensors):
    sizes = set()
    for t in tensors:
        sizes.add(t.shape[-1])
    (w,) = sizes
    return x[..., : w // 2] * len(sizes)


def first_of(x, tensors):
    return x + next(iter({t.shape[1] for t in tensors}))


def looked_up(x, tensors):
    sizes = {t.shape[2] for t in tensors}
    return x + (20 in sizes) + (min(sizes) == 30), sizes, sizes | {3}, sizes == {20}, frozenset(sizes)


@pytest.mark.parametrize("fn, most", [(one_size, 4), (added, 4), (first_of, 4), (looked_up, 40)])
def test_sets_of_sizes_that_vary(fn, most):
    compiled, draw = tenon.compile(fn), random.Random(2)
    for call in range(60):
        h, w = draw.randint(6, 39), draw.randint(6, 30)
        x = torch.rand(3, h, w)
        tensors = [x, x + 1] if call % 2 else [x]
        got, want = compiled(x, tensors), fn(x, tensors)
        assert type(got) is type(want)
        torch.testing.assert_close(got, want) if isinstance(got, torch.Tensor) else None
        if isinstance(got, tuple):
            torch.testing.assert_close(got[0], want[0])
            assert got[1:] == want[1:]
    assert tenon.stats()["graphs"] <= most, tenon.stats()


def test_sets_of_two_sizes_are_what_they_are():
    def fn(x, y):
        sizes = {x.shape[0], y.shape[0]}
        sizes.add(x.shape[1])
        return len(sizes), sorted(sizes), list(sizes), {x.shape, y.shape} == {x.shape}

    compiled = tenon.compile(fn)
    for a, b, c in [(2, 3, 4), (3, 3, 4), (5, 4, 4), (6, 6, 6), (7, 8, 7), (40, 3, 9)]:
        x, y = torch.zeros(a, c), torch.zeros(b, c)
        assert compiled(x, y) == fn(x, y)
