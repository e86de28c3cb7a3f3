"""Ints that name what a program makes (a counter's, a length) as keys of dicts: which of them are one matters, not their values."""
import itertools
from collections import OrderedDict, defaultdict

import numpy as np
import pytest

import tenon

CALLS = 20


def rounds(run):
    """What a program gives, call for call, and what it leaves; `run` makes its state and gives the function and a look at that."""
    function, state = run()
    given = [function(np.arange(3.0) + k) for k in range(CALLS)]
    return given, state()


def same(run, graphs=3):
    """As plain, in a few graphs, none of them eager."""
    plain = rounds(run)
    tenon.reset()

    def compiled():
        function, state = run()
        return tenon.compile(function), state

    given, left = rounds(compiled)
    assert left == plain[1]
    for ours, theirs in zip(given, plain[0]):
        np.testing.assert_equal(ours, theirs)
    stats = tenon.stats()
    assert stats["graphs"] <= graphs and stats["eager_fallbacks"] == 0, stats


def counting():
    class Node:
        next_id = 0

        def __init__(self, registry):
            Node.next_id += 1
            self.id = Node.next_id
            registry[self.id] = self

    return Node


def test_a_class_that_counts_its_objects():
    def run():
        Node, registry = counting(), {}

        def function(x):
            node = Node(registry)
            return x * 2, node.id, registry[node.id] is node

        return function, lambda: (Node.next_id, list(registry), [n.id for n in registry.values()])

    same(run)


def test_a_registry_of_the_call():
    def run():
        Node = counting()

        def function(x):
            registry = {}
            first, second = Node(registry), Node(registry)
            assert registry[first.id] is first and second.id in registry and len(registry) == 2
            del registry[first.id]
            return x * 2, second.id - first.id, list(registry), first.id in registry, registry.get(first.id, 7)

        return function, lambda: Node.next_id

    same(run)


def test_what_is_put_in_is_taken_out_again():
    def run():
        Node, registry = counting(), OrderedDict(kept=1)

        def function(x):
            node, other = Node(registry), Node(registry)
            found = [type(key).__name__ for key in registry]
            del registry[node.id]
            assert registry.pop(other.id) is other and registry.pop(other.id, 5) == 5
            return x + 1, found, node.id in registry

        return function, lambda: (Node.next_id, list(registry))

    same(run)


def test_numbers_of_an_instance_a_global_and_a_count():
    def run():
        class Holder:
            n = 0

        holder, table, count = Holder(), {}, itertools.count(3, 2)

        def function(x):
            holder.n += 1
            table[holder.n] = 1
            table[-next(count)] = 2
            return x * 2, holder.n

        return function, lambda: (holder.n, list(table.items()), repr(count))

    same(run)


def test_a_length_as_the_key():
    def run():
        table = {}

        def function(x):
            table[len(table)] = 1
            table[len(table)] = 2
            return x * 2, len(table)

        return function, lambda: list(table.items())

    same(run)


def test_a_default_dict():
    def run():
        Node = counting()

        def function(x):
            groups = defaultdict(list)
            node = Node({})
            groups[node.id].append(x * 2)
            groups[node.id].append(x * 3)
            return sum(groups[node.id]), len(groups)

        return function, lambda: Node.next_id

    same(run)


def test_a_key_that_comes_to_be_that_of_another_value():
    table = {}

    class Counter:
        n = 0

    @tenon.compile
    def function(x):
        Counter.n += 1
        given = {4: "four", 7: "seven"}
        given[Counter.n] = "mine"
        table[Counter.n] = 1
        return x * 2, given[4], given.get(7), len(given), list(given.values()), 5 in table

    for k in range(1, 12):
        plain = {4: "four", 7: "seven"}
        plain[k] = "mine"
        given = function(np.ones(3))
        assert given[1:] == (plain[4], plain.get(7), len(plain), list(plain.values()), k >= 5)


def test_a_key_that_is_in_an_older_dict_at_some_calls_only():
    table = {3: "three", 5: "five"}

    class Counter:
        n = 0

    @tenon.compile
    def function(x):
        Counter.n += 1
        found = table.get(Counter.n, "none")
        if Counter.n in table:
            del table[Counter.n]
        return x + 1, found, 5 in table, 3 in table, list(table)

    for k in range(1, 9):
        left = [key for key in (3, 5) if key > k]
        assert function(np.ones(3))[1:] == ({3: "three", 5: "five"}.get(k, "none"), k < 5, k < 3, left)


def test_two_numbers_that_come_to_be_one():
    @tenon.compile
    def function(x, n, m):
        table = {}
        table[n] = 1
        table[m] = 2
        return x * 2, len(table), table[n], list(table)

    for n, m in [(1, 9), (2, 8), (3, 7), (5, 5), (6, 4)]:
        expected = {n: 1, m: 2} if n != m else {n: 2}
        assert function(np.ones(2), n, m)[1:] == (len(expected), expected[n], list(expected))


@pytest.mark.parametrize("read", [lambda d: d == {1: 0, 30: 0}, lambda d: dict(d), lambda d: sorted(d), lambda d: d.keys() & {3, 5}, lambda d: 5 in d.keys(), lambda d: d | {5: 1}, lambda d: d.copy().get(5), lambda d: repr(d), lambda d: list(reversed(d)), lambda d: set(d)])
def test_c_code_that_reads_such_a_dict(read):
    @tenon.compile
    def function(x, n):
        table = {1: 0}
        table[n] = 0
        return x * 2, read(table)

    for n in (3, 5, 7, 30, 5, 1):
        assert function(np.ones(2), n)[1] == read({1: 0, n: 0})


@pytest.mark.parametrize("kind", [dict, OrderedDict])
@pytest.mark.parametrize(
    "take", [list, tuple, lambda v: [*v], lambda v: [] + list(v), lambda v: next(iter(v)), lambda v: list(map(str, v)), lambda v: list(zip(v, v))], ids=range(7)
)
def test_values_under_keys_that_vary(kind, take):
    """An OrderedDict looks its keys up while it is walked over; that decides nothing."""
    def run():
        Node, registry = counting(), kind()

        def function(x):
            Node.next_id += 1
            registry[Node.next_id] = 7
            values, more = take(registry.values()), []
            more += registry.values()
            more.extend(registry.values())
            del registry[Node.next_id]
            return x * 2, values, more

        return function, lambda: (Node.next_id, list(registry))

    same(run)


def filled(new, d):
    new.update(d if type(d) is dict else dict(d))
    return new


COPIES = {
    "dict": dict, "OrderedDict": OrderedDict, "copy": lambda d: d.copy(), "display": lambda d: {**d}, "comprehension": lambda d: {k: v for k, v in d.items()},
    "by key": lambda d: {k: d[k] for k in d}, "update": lambda d: filled({}, d), "joined": lambda d: d | {} if type(d) is dict else dict(d), "joined from the left": lambda d: {} | d if type(d) is dict else dict(d),
}


@pytest.mark.parametrize("kind", [dict, OrderedDict])
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_copies_of_dicts_under_whose_keys_numbers_vary(kind, copied):
    def run():
        Node, registry = counting(), kind()

        def function(x):
            first, second = Node(registry), Node(registry)
            held = copied(registry)
            del registry[first.id], registry[second.id]
            one, other = list(held.values())
            return x * 2, one is first and other is second, len(held), len(registry), type(held).__name__

        return function, lambda: (Node.next_id, list(registry))

    same(run)


@pytest.mark.parametrize("copied", [copied for name, copied in COPIES.items() if name != "OrderedDict"])
def test_look_ups_in_a_copy(copied):
    def run():
        Node, registry = counting(), {}

        def function(x):
            first, second = Node(registry), Node(registry)
            held = copied(registry)
            del registry[first.id]
            found = held[first.id] is first, held.get(second.id) is second, first.id in registry
            held[second.id] = 7
            del registry[second.id], held[first.id]
            return x * 2, found, held, list(held.items())

        return function, lambda: (Node.next_id, list(registry))

    same(run)


def test_a_comprehension_in_which_numbers_come_to_be_one():
    @tenon.compile
    def function(x, n, m):
        return x * 2, {k: at for at, k in enumerate((n, m, 4))}

    for n, m in [(1, 9), (2, 8), (3, 7), (5, 5), (6, 4), (4, 4), (4, 1)]:
        assert function(np.ones(2), n, m)[1] == {k: at for at, k in enumerate((n, m, 4))}
