"""Writes to objects that are older than the call: done once a call, in order, and seen by later reads."""
import collections
import itertools

import pytest

from harness import Break, Captured, Number, breaks
from state import alike, check_state

x = Number(3.0)
counter = 0
cache = {}


class Box:
    def __init__(self, **values):
        self.__dict__.update(values)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Module:
    """Attributes the way torch.nn.Module keeps them."""

    def __init__(self):
        object.__setattr__(self, "_buffers", {"total": Number(0.0)})
        self.scale = 2

    def __getattr__(self, name):
        if name in self.__dict__.get("_buffers", ()):
            return self.__dict__["_buffers"][name]
        raise AttributeError(name)

    def __setattr__(self, name, value):
        buffers = self.__dict__.get("_buffers")
        if buffers is not None and name in buffers:
            buffers[name] = value
        else:
            super().__setattr__(name, value)

    def step(self, v):
        self.total = self.total + v * self.scale
        self.last = v
        return self.total


def test_attributes():
    def fn(box, a):
        box.a = a * 2
        box.b = box.a + box.a
        box.a = box.b
        return box.a

    check_state(fn, lambda: (Box(a=1), Number(2.0)), captures=1)


def test_an_attribute_that_was_read_before():
    def fn(box, a):
        before = box.n
        box.n = before + 1
        return a * before, box.n

    check_state(fn, lambda: (Box(n=1), Number(2.0)), captures=3)


def test_attributes_deleted_and_made_again():
    def fn(box, a):
        del box.a
        missing = hasattr(box, "a")
        box.a = a
        box.c = [a]
        return missing, list(vars(box))

    check_state(fn, lambda: (Box(a=1, b=2), Number(2.0)))


def test_slots():
    def fn(s, a):
        s.b = s.a * a
        s.a = 3
        return s.a, s.b

    check_state(fn, lambda: (Slotted(2), Number(2.0)))


def test_buffers_rebound():
    captured = check_state(lambda m, a: m.step(a), lambda: (Module(), Number(2.0)))
    assert len(captured.outputs) == 1


def test_class_attributes():
    class Count:
        made = 0

    def fn(a):
        Count.made = Count.made + 1
        return a * Count.made

    first = Captured(fn, (x,))
    assert Count.made == 0
    assert first(x) == Number(3.0) and Count.made == 1
    assert not first.check((x,))


def test_globals():
    def fn(a):
        global counter, fresh_global
        counter = counter + 1
        fresh_global = [a, counter]
        return fresh_global, counter

    captured = Captured(fn, (x,))
    assert counter == 0 and "fresh_global" not in globals()
    result = captured(x)
    assert counter == 1 and result[0] is fresh_global and result[0][0] is x
    del globals()["fresh_global"]


def test_globals_deleted():
    def fn(a):
        global doomed
        doomed = doomed + a
        value = doomed
        del doomed
        return value

    globals()["doomed"] = 1
    captured = Captured(fn, (x,))
    assert doomed == 1
    assert captured(x) == Number(4.0) and "doomed" not in globals()


def test_cells():
    def make():
        total = Number(0.0)

        def add(v):
            nonlocal total
            total = total + v
            return total

        return add, (lambda: total)

    add, read = make()
    captured = Captured(add, (x,))
    assert read() == Number(0.0)
    for n in (1, 2, 3):
        assert captured(x) == Number(3.0 * n) and read() == Number(3.0 * n)


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict, collections.Counter, lambda **k: collections.defaultdict(list, k)])
def test_dicts(kind):
    def fn(d, a):
        d["k"] = a * 2
        d["new"] = [d["k"], a]
        d["new"].append(d)
        del d["gone"]
        return d["k"], len(d), list(d), "gone" in d, d.get("gone"), d.pop("x"), d.pop("y", 4), d.setdefault("z", a), d.setdefault("k")

    def make():
        return kind(k=1, gone=2, x=3), Number(2.0)

    mine, plain = make(), make()
    captured = Captured(fn, mine)
    alike(mine, make())
    alike([captured(*mine), *mine], [fn(*plain), *plain])


def test_dict_update_clear_and_order():
    def fn(d, o, a):
        d.update({"p": a, "a": 5}, q=6)
        d.update([("r", 7)])
        d |= {"s": a}
        keys = list(d)
        o.move_to_end("b")
        o.move_to_end("c", last=False)
        last = d.popitem()
        order = list(o.items())
        o.clear()
        o["n"] = a
        return keys, last, order, "b" in o, len(o)

    check_state(fn, lambda: ({"a": 1}, collections.OrderedDict(a=1, b=2, c=3), Number(2.0)), calls=1)


def test_defaults_are_inserted():
    def fn(d, a):
        d["seen"].append(a)
        d["seen"].append(len(d["seen"]))
        return d["seen"]

    check_state(fn, lambda: (collections.defaultdict(list), Number(2.0)), calls=2)


def test_a_list_that_is_only_appended_to_needs_no_guard():
    def fn(history, a):
        history.append(a * 2)
        history.extend([1, a])
        history += (2,)
        return a

    check_state(fn, lambda: ([], Number(2.0)), captures=1)


def test_lists():
    def fn(items, a):
        items[0] = a
        items.append(items[0] * 2)
        first, last, size = items[1], items[-1], len(items)
        items.insert(1, "new")
        items.reverse()
        popped = items.pop(), items.pop(0)
        items.remove(5)
        del items[0]
        items.sort(key=str)
        items[1:1] = [7, a]
        items *= 2
        return first, last, size, popped, items, items[2], a in items

    check_state(fn, lambda: ([1, 5, 6, 5, "s"], Number(2.0)), calls=1)


def test_lists_are_read_as_they_were_before_the_write():
    def fn(items, a):
        items.append(a)
        return items[0] + a, items[-1], len(items)

    mine, plain = ([1, 2], Number(1.0)), ([1, 2], Number(1.0))
    captured = Captured(fn, mine)
    alike([captured(*mine), *mine], [fn(*plain), *plain])
    assert not captured.check(mine)
    assert captured.check(([1, 3], Number(1.0))) and not captured.check(([2, 2], Number(1.0)))


def test_deques():
    def fn(q, a):
        q.append(a)
        q.appendleft(1)
        q.extend([a * 2])
        q.rotate(1)
        return q

    check_state(fn, lambda: (collections.deque([4, 5], maxlen=3), Number(2.0)), captures=1)
    check_state(lambda q, a: (q.popleft(), q.append(a), q[0], len(q), list(q)), lambda: (collections.deque([4, 5, 6]), Number(2.0)))


def test_sets():
    def fn(s, a):
        s.add(4)
        s.discard(1)
        s.update([5, 6], (7,))
        s |= {8}
        s -= {5}
        return 4 in s, 1 in s, len(s), sorted(s), a

    check_state(fn, lambda: ({1, 2}, Number(2.0)), calls=2)
    check_state(lambda s: s.add(9), lambda: ({1, 2},), captures=1)


def test_aliases_between_results_and_written_values():
    def fn(box, items, a):
        made = [a]
        box.first = made
        items.append(made)
        other = box
        other.second = items
        made.append(box)
        return made, box, {"again": made}

    check_state(fn, lambda: (Box(), [], Number(2.0)), captures=1)


def test_one_object_by_two_names():
    def fn(p, q, a):
        p["k"] = a
        return q.get("k"), q is p

    def both():
        d = {}
        return d, d, Number(2.0)

    check_state(fn, both, calls=1)
    check_state(fn, lambda: ({}, {}, Number(2.0)))


def test_a_failed_capture_leaves_everything_as_it_was():
    def fn(box, d, items, s, a):
        box.n, d["k"], s_before = 4, 5, len(s)
        del d["j"]
        items.clear()
        s.clear()
        box.extra = s_before
        return bool(a > 1)

    breaks(fn, Box(n=1), {"j": 1, "k": 2}, [1, 2], {3}, x, reason="")


def test_what_was_written_is_what_later_calls_read():
    def fn(state, a):
        state.append(a)
        return sum(len(str(i)) for i in range(3)), state[-1]

    check_state(fn, lambda: ([], Number(1.0)), calls=4)


def test_the_key_of_a_write_may_be_an_object():
    keys = [Box(), Box()]

    def fn(d, a):
        for n, key in enumerate(keys):
            d[key] = a * n
        return d[keys[1]], keys[0] in d

    check_state(fn, lambda: ({}, Number(2.0)), calls=1)


def test_the_order_of_writes():
    def fn(box, log, a):
        log.append(1)
        box.a = a
        log.append(box.a)
        box.a = a * 2
        log.append(2)

    check_state(fn, lambda: (Box(), [], Number(2.0)), captures=1)
