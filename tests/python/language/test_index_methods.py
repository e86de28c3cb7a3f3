"""An `__index__` written in Python that C code would call: it runs where its reads are guarded."""
import itertools
from collections import deque

import pytest

import tenon


class Place:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def inserted(p):
    items = [1, 2, 3, 4]
    items.insert(p, 9)
    return items, items.pop(p), items[p]


def assigned(p):
    items = [1, 2, 3, 4]
    items[p] = 8
    del items[p:]
    return items


READS = {
    "items": lambda p: ([5, 6, 7][p], (5, 6, 7)[p], "abc"[p], b"abc"[p], range(5)[p], deque([1, 2, 3])[p]),
    "slices": lambda p: ([5, 6, 7][:p], (5, 6, 7)[p:], "abc"[p:], [1, 2, 3, 4][slice(p)], slice(p).start),
    "ranges": lambda p: (list(range(p)), list(itertools.islice("abc", p)), list(itertools.repeat(1, p)), bytes(p)),
    "inserted": inserted,
    "assigned": assigned,
    "methods": lambda p: ((5).__add__(p.value), [1].__mul__(p)),
}


@pytest.mark.parametrize("name", READS)
def test_places(name):
    fn = READS[name]
    compiled = tenon.compile(fn)
    for value in (1, 2, 0, 1, 2):
        assert compiled(Place(value)) == fn(Place(value))


def test_tensors():
    torch = pytest.importorskip("torch")

    def fn(x, p):
        y = x.clone()
        y[p] = 9
        return x[p], x[:p], x[(p, slice(p))], torch.zeros(p), torch.zeros((p, 2)), x.expand(p, 3, 3), y

    compiled, x = tenon.compile(fn), torch.arange(9.0).reshape(3, 3)
    for value in (1, 2, 1, 2):
        assert [t.tolist() for t in compiled(x, Place(value))] == [t.tolist() for t in fn(x, Place(value))]


def test_truth_by_the_operator_module():
    import operator

    class Odd:
        def __init__(self, value):
            self.value = value

        def __bool__(self):
            return self.value > 1

        def __iter__(self):
            return iter([self.value])

        def __length_hint__(self):
            return self.value

    compiled = tenon.compile(lambda p: (operator.truth(p), operator.not_(p), operator.length_hint(p)))
    for value in (1, 2, 1):
        assert compiled(Odd(value)) == (value > 1, value <= 1, value)


def test_objects_that_torch_takes_for_sequences():
    torch = pytest.importorskip("torch")

    class Listed(Place):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return [self.value][index]

    compiled, x = tenon.compile(lambda x, p: x[p] + 1), torch.arange(9.0).reshape(3, 3)
    for value in (1, 2, 1):
        assert compiled(x, Listed(value)).tolist() == (x[[value]] + 1).tolist()
