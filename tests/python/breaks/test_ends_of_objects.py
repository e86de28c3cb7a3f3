"""Code that runs when an object's last reference goes (`finally` of generators, `__del__`) runs in its turn among the other effects."""
from __future__ import annotations

import weakref

import numpy as np
import pytest

import tenon


def noting(log, name):
    try:
        yield 1
        yield 2
    finally:
        log.append(name)


class Noting:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def __del__(self):
        self.log.append(self.name)


def suspended(log, name):
    generator = noting(log, name)
    next(generator)
    return generator


class Place:
    value = None


class Slotted:
    __slots__ = ("value",)


def to_key(held, log):
    held["dict"]["it"] = None


def deleted_key(held, log):
    del held["dict"]["it"]


def cleared(held, log):
    held["dict"].clear()


def popped(held, log):
    held["dict"].pop("it")


def to_item(held, log):
    held["list"][0] = None


def removed_item(held, log):
    held["list"].pop()


def cleared_list(held, log):
    held["list"].clear()


def sliced(held, log):
    held["list"][:] = [1, 2]


def to_attribute(held, log):
    held["place"].value = 3


def to_slot(held, log):
    held["slotted"].value = 3


def held_deeper(held, log):
    held["deeper"]["it"] = ()


CHANGES = (to_key, deleted_key, cleared, popped, to_item, removed_item, cleared_list, sliced, to_attribute, to_slot, held_deeper)


def everything(make, log):
    place, slotted = Place(), Slotted()
    place.value, slotted.value = make(log, "attribute"), make(log, "slot")
    return {"dict": {"it": make(log, "dict")}, "list": [make(log, "list")], "place": place, "slotted": slotted, "deeper": {"it": [(make(log, "deeper"),)]}}


@pytest.mark.parametrize("make", (suspended, Noting))
@pytest.mark.parametrize("change", CHANGES)
def test_what_loses_its_place_ends_at_once(change, make):
    def run(held, log, x):
        log.append("before")
        y = x * 2
        change(held, log)
        log.append(len(log))
        return y + len(log)

    compiled = tenon.compile(run)
    for _ in range(2):
        logs = [], []
        held = [everything(make, log) for log in logs]
        got, want = compiled(held[0], logs[0], np.ones(2)), run(held[1], logs[1], np.ones(2))
        assert logs[0] == logs[1] and len(logs[0]) == 3
        np.testing.assert_array_equal(got, want)


def test_a_frame_that_an_exception_leaves_ends_with_the_exception():
    def inner(log, x):
        generator = noting(log, "end")
        log.append(next(generator))
        tenon.graph_break()
        y = x + 1
        log.append("raises")
        return y[undefined]  # noqa: F821

    def run(log, x):
        try:
            return inner(log, x)
        except NameError as error:
            log.append(type(error).__name__)
        log.append("after")
        return x * len(log)

    compiled = tenon.compile(run)
    for _ in range(2):
        got, want = [], []
        np.testing.assert_array_equal(compiled(got, np.ones(2)), run(want, np.ones(2)))
        assert got == want == [1, "raises", "NameError", "end", "after"]


def test_a_loop_that_an_exception_leaves_closes_its_generator_first():
    def run(log, x):
        try:
            for number in noting(log, "end"):
                tenon.graph_break()
                x = x * number
                log.append("raises")
                raise KeyError(number)
        except KeyError:
            log.append("caught")
        return x

    compiled = tenon.compile(run)
    for _ in range(2):
        got, want = [], []
        np.testing.assert_array_equal(compiled(got, np.ones(2)), run(want, np.ones(2)))
        assert got == want == ["raises", "end", "caught"]


class Holder:
    pass


def item_of_a_new_list(log):
    items = [Noting(log, "first"), Noting(log, "second")]
    items[0] = 3
    log.append("replaced")
    items.pop()
    log.append("popped")


def value_of_a_new_dict(log):
    table = {1: Noting(log, "value")}
    table[1] = 2
    log.append("replaced")


def tuple_around_it(log):
    pair = (Noting(log, "in a tuple"),)
    pair = None
    log.append(pair)


def attribute_of_a_new_object(log):
    holder = Holder()
    holder.held = Noting(log, "attribute")
    holder.held = 3
    log.append("replaced")
    holder.held = Noting(log, "other")
    holder = None
    log.append(holder)


def argument_of_a_call(log):
    def name_of(noting):
        log.append("asked")
        return noting.name

    log.append(name_of(Noting(log, "argument")))
    log.append(name_of(noting=Noting(log, "named")))


def list_that_nobody_keeps(log):
    [Noting(log, number) for number in range(3)]
    log.append("made")


def argument_of_an_exception(log):
    try:
        raise ValueError(Noting(log, "argument"))
    except ValueError:
        log.append("caught")
    log.append("done")


def watched_by_a_weak_reference(log):
    holders = [Holder()]
    tenon.graph_break()
    reference = weakref.ref(holders[0], lambda gone: log.append("gone"))
    tenon.graph_break()
    holders = None
    log.append((reference() is None, holders))


HELD_BY_FRAMES = (
    item_of_a_new_list, value_of_a_new_dict, tuple_around_it, attribute_of_a_new_object, argument_of_a_call, list_that_nobody_keeps, argument_of_an_exception,
    watched_by_a_weak_reference,
)


@pytest.mark.parametrize("program", HELD_BY_FRAMES)
def test_what_only_frames_hold_ends_when_they_let_it_go(program):
    compiled = tenon.compile(program)
    want: list = []
    program(want)
    for _ in range(3):
        got: list = []
        compiled(got)
        assert got == want
