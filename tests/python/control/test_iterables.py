"""Objects whose class iterates in Python, given to C code: what C code keeps is the object itself."""
import collections
import functools
import types

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
