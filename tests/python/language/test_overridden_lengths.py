"""Containers whose class overrides what C code asks them: what is stored is read past that, as the interpreter reads it."""
import collections

import pytest

import tenon

np = pytest.importorskip("numpy")


class LongList(list):
    def __len__(self):
        return 7


class LongTuple(tuple):
    def __len__(self):
        return 7


class LongDeque(collections.deque):
    def __len__(self):
        return 7

    def __getitem__(self, index):
        return "overridden"


class LongDict(dict):
    def __len__(self):
        return 7


class LongSet(set):
    def __len__(self):
        return 7


class ShortList(list):
    def __len__(self):
        return 0


CLASSES = [LongList, LongTuple, LongDeque, LongSet, ShortList]
CALLS = {
    "ascii": ascii,
    "repr": repr,
    "len": len,
    "list": list,
    "items": lambda v: [*v],
    "in": lambda v: 2 in v,
    "equal": lambda v: v == type(v)([1, 2]),
    "sorted": sorted,
    "sum": sum,
    "truth": bool,
    "zip": lambda v: list(zip(v, v)),
    "join": lambda v: ",".join(map(str, v)),
    "unpacked": lambda v: (lambda a, b: (b, a))(*v),
}


@pytest.mark.parametrize("born", [False, True], ids=["older", "born"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_a_container_that_says_another_length(cls, call, born):
    def run(value, x):
        return call(cls([1, 2]) if born else value), x * 2

    def outcome(function):
        try:
            return function(cls([1, 2]), np.ones(2))[0]
        except Exception as error:
            return type(error), str(error)

    compiled = tenon.compile(run)
    for _ in range(2):
        assert outcome(compiled) == outcome(run)


def test_a_dict_that_says_another_length():
    def run(value, x):
        return ascii(value), len(value), list(value.items()), x * 2

    assert tenon.compile(run)(LongDict(a=1), np.ones(2))[:3] == run(LongDict(a=1), np.ones(2))[:3]


def raising(error):
    def hint(self):
        raise error

    return hint


@pytest.mark.parametrize("keep", [
    list, tuple, sorted, bytes, lambda made: [*made], lambda made: (lambda *given: given)(*made), lambda made: [0].extend(made), lambda made: [0].__iadd__(made), set, sum, lambda made: list(map(str, made)),
], ids=["list", "tuple", "sorted", "bytes", "list display", "call", "extend", "+=", "set", "sum", "map"])
@pytest.mark.parametrize("hint", [
    lambda self: 2, lambda self: NotImplemented, lambda self: "two", lambda self: -1, lambda self: True, raising(ValueError("no hint")), raising(TypeError("no hint")),
], ids=["a number", "not implemented", "a text", "negative", "a bool", "ValueError", "TypeError"])
@pytest.mark.parametrize("name", ["__length_hint__", "__len__"])
def test_who_keeps_items_asks_how_many_they_are(keep, hint, name, as_plain):
    def scenario(compiled):
        asked = []

        def ask(self):
            asked.append("length")
            return hint(self)

        class Items:
            def __iter__(self):
                asked.append("iterator")
                return iter((2, 1))

        setattr(Items, name, ask)

        @compiled
        def call(x):
            try:
                return x * 2, keep(Items())
            except (TypeError, ValueError) as error:
                return x * 3, f"{type(error).__name__}: {error}"

        return [call(np.ones(2)), call(np.ones(2)), asked]

    as_plain(scenario)


def test_an_older_list_asks_as_a_new_one(as_plain):
    def scenario(compiled):
        asked, held = [], [0]

        class Items:
            def __iter__(self):
                asked.append("iterator")
                return iter((2, 1))

            def __len__(self):
                asked.append("length")
                return 2

        @compiled
        def call(x):
            nonlocal held
            held.extend(Items())
            held += Items()
            held[1:2] = Items()
            return x * len(held)

        return [call(np.ones(2)), call(np.ones(2)), asked, held]

    as_plain(scenario)
