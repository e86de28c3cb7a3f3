"""C code that compares, sorts or prints the items of a container asks tensors for their values: no call may get those of another."""

import collections
import functools
import itertools

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

WALKS = {
    "the list itself": lambda items: items,
    "a list of it": list,
    "a tuple of it": tuple,
    "a deque of it": collections.deque,
    "an iterator": iter,
    "a chain": lambda items: itertools.chain(items),
    "a copy of an iterator": lambda items: itertools.tee(items)[0],
    "the values of a dict": lambda items: dict(enumerate(items)).values(),
    "pairs": lambda items: zip(items, items),
}

QUESTIONS = {
    "in": lambda items: 1 in items,
    "index": lambda items: list(items).index(1),
    "count": lambda items: tuple(items).count(1),
    "remove": lambda items: (lambda copy: (copy.remove(1), len(copy)))(list(items)),
    "sort": lambda items: (lambda copy: (copy.sort(), copy))(list(items)),
    "==": lambda items: list(items) == [2, 1, 3],
    "any": any,
    "all": all,
    "filter": lambda items: len(list(filter(None, items))),
    "compress": lambda items: list(itertools.compress("abc", items)),
    "groupby": lambda items: len(list(itertools.groupby(items))),
    "reduce": lambda items: functools.reduce(max, items),
    "repr": lambda items: repr(list(items)),
    "format": lambda items: f"{list(items)} {'%s' % list(items)} {'{}'.format(list(items))}",
    "an exception's text": lambda items: str(ValueError(list(items))),
}


def outcome(function, items):
    try:
        return repr(function(items))
    except Exception as failure:  # what it says is compared
        return f"{type(failure).__name__}: {failure}"


@pytest.mark.parametrize("make", [torch.tensor, np.array, np.int64], ids=["tensors", "arrays", "scalars"])
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_c_code_sees_the_tensors_of_this_call(question, make):
    for walk in WALKS.values():
        def ask(items, walk=walk):
            return question(walk(items))

        compiled = tenon.compile(ask)
        for values in ([1, 2, 3], [2, 1, 3], [3, 3, 3], [0, 1, 2], [1, 2, 3]):
            assert outcome(compiled, [make(value) for value in values]) == outcome(ask, [make(value) for value in values])


def test_a_list_that_is_older_than_the_call_is_changed_by_what_its_tensors_are():
    def drop(items):
        items.remove(2)
        items.sort()
        return items

    compiled = tenon.compile(drop)
    for values in ([2, 3, 1], [3, 2, 1], [1, 3, 2]):
        items, expected = [torch.tensor(value) for value in values], [torch.tensor(value) for value in values]
        assert compiled(items) is items
        assert items == drop(expected)
