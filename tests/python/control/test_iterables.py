"""Objects whose class iterates in Python, given to C code: what C code keeps is the object itself."""
import collections
import functools
import types

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


class Items:
    def __init__(self, *values):
        self.values = values

    def __iter__(self):
        for value in self.values:
            yield value

    def __call__(self, x):
        return x + 1


def kept(container):
    return [type(v).__name__ for v in container]


def stored(x):
    items = Items(x, x * 2)
    by_key, ordered = dict(a=items), collections.OrderedDict(a=items)
    dict.__setitem__(by_key, "b", items)
    by_key.setdefault("c", items)
    listed, queue = [items], collections.deque([items])
    listed.insert(0, items)
    queue.append(items)
    queue.appendleft(items)
    return (kept(by_key.values()), kept(ordered.values()), kept(listed), kept(queue), functools.partial(max, items).args[0] is items, types.SimpleNamespace(a=items).a is items, {}.get("z", items) is items, {}.pop("z", items) is items)


def iterated(x):
    items = Items(x, x * 2)
    out = [list(items), tuple(items), list(zip(items, [1, 2])), list(enumerate(items)), list(map(items, items)), sum(items)]
    more = [x]
    more.extend(items)
    return out, more, collections.deque(items).pop(), functools.reduce(lambda a, b: a * b, items, x)


def left_to_python(x):
    items = Items(x, x * 2)
    listed = [items]
    listed += items
    return listed.index(items), len(listed), kept(dict.fromkeys("pq", items).values())


def test_what_is_left_to_python(check):
    check(left_to_python, (torch.ones(2),), fallbacks=None)


@pytest.mark.parametrize("program", [stored, iterated])
def test_as_plain_execution(check, program):
    check(program, (torch.ones(2),))
    assert tenon.stats()["graph_breaks"] == 0


class ByIndex:
    """Has no `__iter__` and no `__reversed__`; and an end that its length does not tell."""

    def __init__(self, *values, first=0):
        self.values, self.first = values, first

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        if index < self.first or index >= len(self.values):
            raise IndexError(index)
        return self.values[index]


def backwards(x):
    out = [list(reversed(ByIndex(x, x * 2, 3))), [v for v in reversed(ByIndex(1, x, first=1))], list(zip(reversed(ByIndex(1, 2)), ByIndex(x, x + 1)))]
    rest = reversed(ByIndex(1, 2, 3))
    kinds = type(rest) is reversed, isinstance(rest, reversed), type(iter(ByIndex(1))).__name__
    return out, next(rest) * x, list(rest), kinds


def through_layers_backwards(x, layers):
    for layer in reversed(layers):
        x = layer(x)
    return x


@pytest.mark.parametrize("program, args", [(backwards, ()), (through_layers_backwards, (torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 2)]),))])
def test_reversed_as_plain_execution(check, program, args):
    with torch.no_grad():
        check(program, (torch.ones(2), *args))
    assert tenon.stats()["graph_breaks"] == 0


def test_reversed_goes_on_after_a_break(check):
    def program(x, items):
        for item in reversed(items):
            x = x + item
            tenon.graph_break()
        return x

    check(program, (torch.ones(2), ByIndex(1, 2, 3)))


def in_pairs(count):
    it = iter(range(count))
    tenon.graph_break()
    return [x + y for x, y in zip(it, it)]


def in_threes_that_nobody_holds(count):
    threes = zip(*[iter(range(count))] * 3)
    tenon.graph_break()
    return [x * y + z for x, y, z in threes]


def advanced_beside(count):
    it = iter(range(count))
    pairs, numbered = zip(it, [10, 20, 30]), enumerate(it)
    tenon.graph_break()
    return [(a, b, next(it, None), next(numbered, None)) for a, b in pairs], list(it)


def apart(count):
    numbered = enumerate(zip(iter(range(count)), iter([1, 2, 3])))
    tenon.graph_break()
    return [at + a * b for at, (a, b) in numbered]


@pytest.mark.parametrize("walk", [in_pairs, in_threes_that_nobody_holds, advanced_beside, apart])
def test_iterators_inside_of_older_ones(walk):
    compiled = tenon.compile(walk)
    for count in (5, 6, 6, 8):
        assert compiled(count) == walk(count)


def test_given_iterators_that_share_what_they_walk_over():
    def pairs(it):
        return [(a, b) for a, b in it]

    compiled = tenon.compile(pairs)
    for make in (lambda: zip([1, 2], [3, 4]), lambda: zip(*[iter([1, 2, 3, 4])] * 2), lambda: enumerate(iter([5, 6])), lambda: zip([7, 8], [9, 10])):
        assert compiled(make()) == pairs(make())


def test_tuples_and_lists_that_hold_them_are_joined(check):
    held, older = Items(1, 2), (Items(3),)

    def fn(x):
        outputs = (x * 2,)
        outputs += (held,)
        listed = [x] + [Items(x)] + list(older)
        listed += [held]
        both = older + outputs
        return outputs[0], outputs[1] is held, kept(both), kept(listed), both[0] is older[0], list(both[2]), len(listed)

    check(fn, (torch.ones(2),))
    assert tenon.stats()["graph_breaks"] == 0
    older = (Items(4, 5),)
    check(fn, (torch.ones(2),))


def test_arrays_whose_length_varies_are_gone_over_in_a_try():
    def fn(a):
        try:
            rows = list(zip(a, iter(a)))
        except TypeError:
            return "refused"
        return np.iterable(a), len(rows), sum(x * y for x, y in rows)

    compiled = tenon.compile(fn)
    for length in (5, 8, 3):
        assert compiled(np.arange(length) * 1.5) == fn(np.arange(length) * 1.5)


class Countdown:
    """An iterator that says at its end what it counted."""

    def __init__(self, x, n, *more):
        self.x, self.n, self.more = x, n, more

    def __iter__(self):
        return self

    def __next__(self):
        self.n -= 1
        if self.n < 0:
            raise StopIteration(self.x.sum(), *self.more)
        return self.x * self.n


def delegated(x):
    def outer():
        total = yield from Countdown(x, 2)
        yield total

    return list(outer())


def stop_of(iterator):
    try:
        while True:
            next(iterator)
    except StopIteration as stop:
        return stop.value, stop.args


@pytest.mark.parametrize("fn", [
    delegated,
    lambda x: stop_of(Countdown(x, 1)),
    lambda x: stop_of(Countdown(x, 1, 2, 3)),
    lambda x: stop_of(map(torch.neg, Countdown(x, 1)))[1],
    lambda x: stop_of(zip([1, 2], Countdown(x, 1)))[1],
    lambda x: stop_of(enumerate(Countdown(x, 0)))[0],
    lambda x: next(Countdown(x, 0), 5),
    lambda x: [list(Countdown(x, 3)), sum(Countdown(x, 3)), 2 in [v.numel() for v in Countdown(x, 2)]],
    lambda x: (stop_of(iter([1])), stop_of(v for v in [1])),
], ids=range(9))  # fmt: skip
def test_the_end_of_an_iterator_says_what_it_gave(check, fn):
    check(fn, (torch.ones(2),))
