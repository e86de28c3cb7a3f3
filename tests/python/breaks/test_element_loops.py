"""Loops over elements: thousands of rounds are not written out, and where all goes by elements plain Python is as good."""
import functools
import re
import resource

import numpy as np
import pytest

import tenon
from tests.python.conftest import same

torch = pytest.importorskip("torch")


def biquad(x, b0=0.2, b1=0.3, b2=0.1, a1=0.1, a2=-0.3):
    y = np.empty_like(x)
    x1 = x2 = y1 = y2 = 0.0
    for n in range(len(x)):
        v = b0 * x[n] + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
        y[n] = v
        x2, x1 = x1, x[n]
        y2, y1 = y1, v
    return y


def smoothed(x):
    def step(s, v):
        return s * 0.9 + v * 0.1

    s = x[0]
    for i in range(1, len(x)):
        s = step(s, x[i])
    return s


def running(x):
    y, i = x.copy(), 1
    while i < len(x):
        y[i] = 0.9 * y[i - 1] + 0.1 * x[i]
        i += 1
    return y


def in_two_loops(x):
    s = x[0]
    for i in range(len(x) // 50):
        for j in range(50):
            s = s * 0.9 + x[i * 50 + j]
    return s


def filtered_and_more(x):
    return np.sin(biquad(x)) * 2 + 1


@pytest.mark.parametrize("fn", [biquad, smoothed, running, in_two_loops, filtered_and_more])
def test_thousands_of_rounds_are_left_to_python(fn, capfd):
    tenon.set_logs(graph_breaks=True)
    compiled = tenon.compile(fn)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for length in (6000, 6000, 5000):
        x = np.sin(np.arange(float(length)))
        same(compiled(x), fn(x))
    stats = tenon.stats()
    assert 1 <= stats["left_to_python"] <= 2 and stats["recompiles"] <= 4, stats  # once a captured place
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024
    assert "goes round more than 2000 times" in capfd.readouterr().err


FROM_C = {
    "map": lambda x: list(map(lambda v: v * 0.9 + 1, x)),
    "reduce": lambda x: functools.reduce(lambda s, v: s * 0.9 + v * 0.1, x),
    "sum": lambda x: sum(v * 0.9 for v in x),
    "sum of map": lambda x: sum(map(lambda v: v * v, x)),
    "comprehension": lambda x: [v * 0.9 + 1 for v in x],
}


@pytest.mark.parametrize("name", FROM_C)
def test_thousands_of_rounds_that_C_code_drives_are_left_to_python(name, capfd):
    tenon.set_logs(graph_breaks=True)
    compiled = tenon.compile(FROM_C[name])
    for length in (3000, 3000, 2500):
        x = np.sin(np.arange(float(length)))
        same(compiled(x), FROM_C[name](x))
    assert tenon.stats()["recompiles"] <= 4, tenon.stats()
    assert "taken apart into more than 2000 items" in capfd.readouterr().err


def test_thousands_of_rounds_that_C_code_drives_over_indices_are_left_to_python(capfd):
    tenon.set_logs(graph_breaks=True)
    fn = lambda x: sum(map(lambda i: x[i] * x[i], range(len(x))))
    compiled = tenon.compile(fn)
    for length in (3000, 3000, 2500):
        x = np.sin(np.arange(float(length)))
        same(compiled(x), fn(x))
    assert tenon.stats()["recompiles"] <= 4, tenon.stats()
    assert "goes round more than 2000 times" in capfd.readouterr().err


def with_a_branch(x):
    total = 0.0
    for v in x:
        if v > 0:
            total = total + v
    return total


def generated(x):
    for v in x:
        if v > 0:
            yield v


def written_while_it_is_read(x):
    y = x + 0
    for i, v in enumerate(y):
        if i > 0 and v > 0:
            y[i - 1] = v
    return y


OVER_ELEMENTS = {
    "branch": with_a_branch,
    "append": lambda x: [v * 2 for v in x],
    "enumerate": lambda x: [i for i, v in enumerate(x) if v > 0],
    "zip": lambda x: [v for v, w in zip(x, x + 1) if v > w - 1],
    "filter": lambda x: list(filter(lambda v: v > 0, x)),
    "generator": lambda x: sum(generated(x)),
    "nested call": lambda x: with_a_branch(x * 2) + (x * 3).sum(),
    "rows": lambda x: sum(row[0] for row in x.reshape(-1, 2) if row[1] > 0),
    "star": lambda x: [*x][-1],
    "max": lambda x: max(x),
    "writes": written_while_it_is_read,
    "split": lambda x: sum(v for v in (x.split(1) if torch.is_tensor(x) else np.split(x, len(x))) if v > 0),
}


@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", OVER_ELEMENTS)
def test_an_array_is_not_taken_apart_into_thousands_of_elements(name, make):
    fn, graphs = OVER_ELEMENTS[name], []
    compiled = tenon.compile(fn)
    for length in (5000, 5000, 4500):
        x = make(np.sin(np.arange(float(length))))
        same(compiled(x), fn(x))
        graphs.append(tenon.stats()["graphs"])
    stats = tenon.stats()
    assert 1 <= stats["left_to_python"] <= 2 and stats["recompiles"] <= 3 and stats["graphs"] <= 4 and graphs[0] == graphs[1], stats
    assert tenon.explain(fn)(x).op_count <= 16


def to_the_next(x):
    y = x + 0
    for i, v in enumerate(y):
        if i + 1 < len(y):
            y[i + 1] = y[i + 1] + v * 0.5
    return y


def to_the_next_by_a_branch(x):
    y = x + 0
    for i, v in enumerate(y):
        if v > 0 and i + 1 < len(y):
            y[i + 1] = y[i + 1] - v * 2
    return y


def between_steps(x):
    y = x + 0
    it = iter(y)
    first = next(it)
    y[1:] = 100
    return first, next(it), list(it)


def used_up(x):
    it = iter(x + 0)
    return len(list(it)), type(it).__name__, it


def handed_out(x):
    y = x + 0
    it = iter(y)
    next(it)
    y[2] = 5
    return it


def through_C(x):
    y = x + 0
    doubled, pairs = map(lambda v: v * 2, y), zip(y, y[1:])
    y *= 3
    return list(doubled), list(pairs)


def in_reverse(x):
    y = x + 0
    for i, v in enumerate(reversed(y)):
        y[0] = y[0] + v
        y[2] = i
    return y


@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
@pytest.mark.parametrize("fn", [to_the_next, to_the_next_by_a_branch, between_steps, handed_out, through_C, in_reverse])
def test_an_item_is_what_it_is_when_its_turn_comes(fn, make):
    compiled = tenon.compile(fn)
    finished = list if fn is handed_out else lambda result: result
    for length in (8, 8, 11):
        x = make(np.sin(np.arange(float(length))))
        with torch.no_grad():
            same(finished(compiled(x)), finished(fn(x)))


def test_an_iterator_over_an_array_that_is_used_up_keeps_its_type():
    got, expected = tenon.compile(used_up)(np.arange(4.0)), used_up(np.arange(4.0))
    assert got[:2] == expected[:2] and type(got[2]) is type(expected[2]) and list(got[2]) == []


def test_what_a_loop_over_elements_does_is_done_once():
    seen = []

    def fn(x):
        for i, v in enumerate(x * 2):
            seen.append(i)
            if v > 0:
                seen.append("above")
        return len(seen)

    compiled = tenon.compile(fn)
    for length in (5000, 600):
        x = np.sin(np.arange(float(length)))
        fn(x)
        expected = seen.copy()
        seen.clear()
        assert compiled(x) == len(expected) and seen == expected
        seen.clear()


@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_hundreds_of_elements_are_not_results_of_the_graph_before_a_branch(make):
    compiled = tenon.compile(with_a_branch)
    x = make(np.sin(np.arange(1000.0)))
    for _ in range(3):
        same(compiled(x), with_a_branch(x))
    stats = tenon.stats()
    assert stats["left_to_python"] == 1 and stats["graphs"] <= 1, stats


def test_a_loop_of_some_hundred_rounds_is_written_out():
    compiled = tenon.compile(smoothed)
    x = np.sin(np.arange(300.0))
    same(compiled(x), smoothed(x))
    assert tenon.stats()["left_to_python"] == 0 and tenon.stats()["graph_breaks"] == 0


def test_a_whole_graph_is_written_out_where_it_is_demanded():
    compiled = tenon.compile(lambda x: sum(v * 2 for v in x), fullgraph=True)
    x = torch.arange(2100.0)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), sum(v * 2 for v in x))


LOOPS = {
    "generator": lambda x: sum(v.item() for v in x if v.item() > 0),
    "list": lambda x: [v.item() for v in x if v.item() > 0],
    "enumerate": lambda x: sum(i * v.item() for i, v in enumerate(x) if v.item() > 0),
    "zip": lambda x: sum(v.item() for v, w in zip(x, x.flip(0)) if v.item() > w.item()),
    "max": lambda x: max(v.item() for v in x),
    "nested": lambda x: sum(v.item() for row in x.view(8, 8) for v in row if v.item() > 0),
    "any": lambda x: any(v.item() > 5 for v in x),
    "numpy": lambda x: [float(v) for v in x.numpy() if v > 0],
    "index": lambda x: sum(x[i].item() for i in range(len(x)) if x[i].item() > 0),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_over_elements_with_a_condition(name):
    fn = LOOPS[name]
    compiled = tenon.compile(fn)
    for call in range(80):
        x = torch.sin(torch.arange(64.0) + call % 3)
        assert compiled(x) == fn(x)
    assert tenon.stats()["recompiles"] <= 16, tenon.stats()


def test_a_loop_far_slower_than_plain_python_is_left_to_it(capfd):
    tenon.set_logs(graph_breaks=True)
    fn = lambda x: [float(v) for v in x if v > 0]
    compiled = tenon.compile(fn)
    x = np.sin(np.arange(64.0))
    for _ in range(80):
        assert compiled(x) == fn(x)
    stats = tenon.stats()
    assert 1 <= stats["left_to_python"] <= 2 and stats["graphs"] <= 3, stats
    assert re.search("(called as|left to) plain Python", capfd.readouterr().err)  # it breaks often, or a trial has shown it


def test_what_works_on_arrays_between_elements_stays_compiled():
    def fn(x, w):
        y = torch.exp(w) * 2
        return [v.item() for v in x if v.item() > 0], y + torch.sin(y) + 1

    compiled = tenon.compile(fn)
    w = torch.linspace(0, 1, 100_000)
    with torch.no_grad():
        for _ in range(60):
            same(compiled(torch.arange(-3.0, 3), w), fn(torch.arange(-3.0, 3), w))
    stats = tenon.stats()
    assert stats["left_to_python"] <= 1 and stats["eager_fallbacks"] == 0 and stats["graphs"] >= 2, stats  # the comprehension alone is left


MANY = 5000
APART = {
    "unbind": lambda x, a: len(x.unbind()),
    "split": lambda x, a: x.split(1)[7],
    "sizes": lambda x, a: len(torch.split(x, [1] * MANY)),
    "chunk": lambda x, a: len(x.chunk(MANY)),
    "tensor_split": lambda x, a: len(torch.tensor_split(x, MANY)),
    "array_split": lambda x, a: np.array_split(a, MANY)[-1],
    "np.split": lambda x, a: np.split(a, range(1, MANY))[3],
    "tolist": lambda x, a: sum((x * 2).tolist()),
}


@pytest.mark.parametrize("name", APART)
def test_what_is_taken_apart_into_thousands_records_none_of_them(name):
    fn, x, a = APART[name], torch.arange(float(MANY)), np.arange(float(MANY))
    compiled = tenon.compile(fn)
    for _ in range(2):
        same(compiled(x, a), fn(x, a))
    assert tenon.stats()["graphs"] <= 1, tenon.stats()


def test_a_few_large_pieces_of_a_large_array_stay_compiled():
    def fn(x, a):
        top, rest = x.split([10, MANY - 10])
        return top.sum() + rest.sum() + x.view(-1, 2).unbind(1)[0].sum() + x.chunk(3)[1].sum(), np.split(a, 2)[0] + 1

    x, a = torch.arange(float(MANY)), np.arange(float(MANY))
    compiled = tenon.compile(fn)
    same(compiled(x, a), fn(x, a))
    assert tenon.stats()["graph_breaks"] == 0, tenon.stats()
