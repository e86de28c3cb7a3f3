"""Objects that are older than the call and hold what they hold in C: a later call with another one must not get what the first one gave."""
import array
import collections
import copy
import datetime
import decimal
import re
import sys
import threading
import types

import numpy as np
import pytest

import tenon

TEXT = "abcdefgh"


def set_items(items, part):
    items = list(items)
    items[part] = "xyz"
    return items


def delete_items(items, part):
    items = list(items)
    del items[part]
    return items


def unpacked(items):
    first, *rest = items
    return first, rest


def extended(items):
    found = [0]
    found.extend(items)
    found += items
    return found


def same(fn, *objects):
    compiled = tenon.compile(fn)
    for each in objects * 2:
        assert compiled(each) == fn(each)


SLICES = {
    "of_a_list": lambda s: [1, 2, 3, 4, 5, 6][s],
    "of_a_tuple": lambda s: (1, 2, 3, 4, 5, 6)[s],
    "of_a_string": lambda s: TEXT[s],
    "assigned": lambda s: set_items("abcdefgh", s) if s.step is None else None,
    "deleted": lambda s: delete_items("abcdefgh", s),
    "text": lambda s: (str(s), f"{s}"),
    "compared": lambda s: (s == slice(0, 2), [s] == [slice(0, 2)]),
    "parts": lambda s: (s.start, s.stop, s.step, s.indices(5)),
}


@pytest.mark.parametrize("name", SLICES)
def test_slices(name):
    same(SLICES[name], slice(0, 2), slice(3, 8, 2), slice(None, -1))


READS = {
    "list": list,
    "tuple": lambda d: tuple(d),
    "set": lambda d: set(d),
    "zip": lambda d: list(zip(d, d)),
    "enumerate": lambda d: list(enumerate(d)),
    "map": lambda d: list(map(str, d)),
    "any": lambda d: any(d),
    "sorted": lambda d: sorted(d),
    "in": lambda d: 1 in d,
    "text": lambda d: (str(d), f"{d}", "%s" % (d,), "{}".format(d), str([d])),
    "unpacked": unpacked,
    "extended": extended,
}
ITERABLES = {
    "bytearray": (bytearray(b"\1\2"), bytearray(b"\0")),
    "array": (array.array("i", [1, 2]), array.array("i", [0])),
    "memoryview": (memoryview(b"\1\2"), memoryview(b"\0")),
    "keys": ({1: 2}.keys(), {3: 4, 5: 6}.keys()),
    "values": ({1: 2}.values(), {3: 4, 5: 6}.values()),
    "mappingproxy": (types.MappingProxyType({1: 2}), types.MappingProxyType({3: 4})),
}


@pytest.mark.parametrize("kind", ITERABLES)
@pytest.mark.parametrize("read", READS)
def test_iterables(kind, read):
    fn = READS[read]
    same(lambda d: fn(d), *ITERABLES[kind])


CONVERSIONS = {
    "text": lambda d: (str(d), repr(d), f"{d}", "{}".format([d])),
    "equal": lambda d: (d == old(d), [d] == [old(d)], d in [old(d)], [d].count(old(d))),
    "order": lambda d: (min(d, old(d)), sorted([old(d), d]), d < old(d), [d] < [old(d)]),
    "key": lambda d: ({old(d): 1}.get(d), d in {old(d)}, hash(d) == hash(old(d)), len({d, old(d)})),
}


def old(value):
    return OLD[type(value)]


OLD = {
    decimal.Decimal: decimal.Decimal("1.5"),
    datetime.datetime: datetime.datetime(2000, 1, 1),
    datetime.timedelta: datetime.timedelta(1),
}
NEW = (decimal.Decimal("0.5"), datetime.datetime(2001, 1, 1), datetime.timedelta(2))


@pytest.mark.parametrize("value", NEW, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", CONVERSIONS)
def test_values(name, value):
    same(CONVERSIONS[name], old(value), value)


def test_numbers_made_of_decimals():
    import math

    same(lambda d: (float(d), int(d), math.floor(d), bool(d), list(map(float, [d]))), *OLD_AND_NEW)
    rate = decimal.Decimal("0.25")

    class Rate(decimal.Decimal):
        pass

    same(lambda d: float(d) + float(rate), Rate(1), Rate(2))


OLD_AND_NEW = (decimal.Decimal("1.5"), decimal.Decimal("0"))


def test_the_clock_is_read_by_every_call():
    compiled = tenon.compile(lambda: (datetime.datetime.now().isoformat(), str(datetime.datetime.now())))
    assert len({part for _ in range(4) for part in compiled()}) == 8


def test_namespaces():
    same(lambda n: (str(n), n == types.SimpleNamespace(a=1), [n] == [types.SimpleNamespace(a=1)]), types.SimpleNamespace(a=1), types.SimpleNamespace(a=2))


def test_tensors():
    torch = pytest.importorskip("torch")
    compiled = tenon.compile(lambda x, d: x + torch.tensor(d)[0])
    for given in (array.array("i", [1]), bytearray(b"\2"), array.array("i", [3])):
        assert compiled(torch.ones(2), given).tolist() == [given[0] + 1.0] * 2


def test_tensors_under_slices_that_vary():
    torch = pytest.importorskip("torch")
    x = torch.arange(20.0)
    part = tenon.compile(lambda x, s: x[s] * 2)
    nested = tenon.compile(lambda x, s: x[(s,)] * 2)
    for s in (slice(0, 2), slice(3, 8, 2), *(slice(n, 2 * n) for n in range(2, 10)), slice(torch.tensor(1), 4), slice(torch.tensor(2), 4)):
        assert part(x, s).tolist() == nested(x, s).tolist() == (x[s] * 2).tolist()


def test_unions_of_classes():
    import typing

    def fn(kind):
        return isinstance(3, kind), isinstance("s", (kind, bytes)), issubclass(float, kind)

    compiled = tenon.compile(fn, fullgraph=True)
    for kind in (int | str, float | str, typing.Union[int, float], typing.Union[str, bytes], typing.Optional[int]) * 2:
        assert compiled(kind) == fn(kind)


def test_methods_of_numbers():
    compiled = tenon.compile(lambda f, g: (f(), g(3)))
    for number in (5, 500, 70000, 5):
        assert compiled(number.bit_length, number.__add__) == (number.bit_length(), number + 3)


def test_truth_in_a_filter():
    same(lambda d: list(filter(None, [d])) == [], {1: 2}.keys(), {}.keys())


def test_attributes_in_a_format():
    same(lambda d: "{0.a}{1:.1f}".format(d, 1.0), types.SimpleNamespace(a=1), types.SimpleNamespace(a=2))
    same(lambda d: "{d[a]:.1f}".format(d=d), {"a": 1.0}, {"a": 2.0})


def test_ordered_dicts_have_attributes(check):
    kept = collections.OrderedDict(a=1)

    def make(x):
        made = collections.OrderedDict(x=x + 1)
        made.note = {"shape": x.shape}
        kept.note = made.note
        twin = copy.copy(made)
        return made, vars(made), twin, vars(twin), vars(kept)

    check(make, (np.ones(2),), (np.ones(3),))


def test_values_of_threads():
    store = threading.local()

    def factor():
        if not hasattr(store, "settings"):
            store.settings = {"factor": 2}
        return store.settings["factor"]

    def fn(x):
        return x * factor()

    compiled, x, seen = tenon.compile(fn), np.arange(3.0), []

    def follow():
        for change in (lambda: None, lambda: None, lambda: store.settings.update(factor=5), lambda: setattr(store, "settings", {"factor": 7}), lambda: delattr(store, "settings")):
            change()
            seen.append(compiled(x)[1])

    follow()
    breaks = tenon.stats()["graph_breaks"]
    thread = threading.Thread(target=follow)
    thread.start()
    thread.join()
    follow()
    assert seen == [2, 2, 5, 7, 2] * 3
    assert tenon.stats()["graph_breaks"] == breaks == 1


@pytest.mark.parametrize("container", [(1, 2), collections.namedtuple("Point", "x y")(1, 2), {1, 2}, frozenset([1])])
def test_a_container_that_takes_no_items_refuses_and_nothing_else_is_said(container, monkeypatch):
    def write(container, key):
        container[key] = 1

    def delete(container, key):
        del container[key]

    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: ignored.append(unraisable.exc_value))
    for fn in (write, delete):
        with pytest.raises(TypeError) as expected:
            fn(container, 0)
        with pytest.raises(TypeError, match=f"^{re.escape(str(expected.value))}$"):
            tenon.compile(fn)(container, 0)
    assert not ignored


@pytest.mark.parametrize("make", [lambda a: types.MethodType(max, a), lambda a: types.MethodType(np.sum, a), lambda a: a.sum, lambda a: (a * 2).sum])
def test_a_bound_method_is_called_as_in_plain_execution(make):
    a = np.array([1.0, 3.0, 2.0])
    want, got = make(a), tenon.compile(make)(a)
    assert type(got) is type(want) and (got.__self__ is a) == (want.__self__ is a)
    assert got() == want()


@pytest.mark.parametrize("made", [enumerate, list, collections.deque, types.MappingProxyType])
@pytest.mark.parametrize("held", [np.float32(2), np.ones(2)])
def test_what_an_alias_of_a_class_holds_is_the_programs(made, held):
    for make in (lambda a: made.__class_getitem__(a), lambda a: made[a], lambda a: made.__class_getitem__((int, [a]))):
        want, got = make(held), tenon.compile(make)(held)
        assert type(got) is type(want)
        assert [type(each) for each in got.__args__] == [type(each) for each in want.__args__]
        assert str(got) == str(want)
