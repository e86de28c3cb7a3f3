"""Weak references: what the program lets go is gone when it looks."""
import weakref

import pytest
import tenon


class Object:
    def __init__(self, a=0):
        self.a = a

    def method(self):
        return self.a


def dropped():
    o = Object(1)
    r = weakref.ref(o)
    del o
    return r() is None


def replaced():
    o = Object(1)
    r = weakref.ref(o)
    before = r() is o
    o = None
    return before, r() is None


def method():
    o = Object(1)
    r = weakref.WeakMethod(o.method)
    before = r() == o.method
    del o
    return before, r() is None


def finalized():
    calls = []
    o = Object(1)
    f = weakref.finalize(o, calls.append, 1)
    before = f.alive
    del o
    return before, f.alive, calls, f()


def watched_twice():
    calls = []
    o = Object(1)
    held = [weakref.ref(o, lambda r: calls.append(1)), weakref.ref(o, lambda r: calls.append(2))]
    del o
    return calls, len(held)


def keyed():
    d = weakref.WeakKeyDictionary()
    a, b = Object(1), Object(2)
    d[a], d[b] = 1, 2
    before = len(d)
    del a
    return before, len(d), list(d.values())


def valued():
    d = weakref.WeakValueDictionary()
    a, b = Object(1), Object(2)
    d["a"], d["b"] = a, b
    del b
    return sorted(d.keys()), d.get("b"), d["a"] is a


@pytest.mark.parametrize("program", [dropped, replaced, method, finalized, watched_twice, keyed, valued])
def test_after_the_last_reference_went(program):
    compiled = tenon.compile(program)
    for _ in range(3):
        assert compiled() == program()


def test_what_an_older_container_let_go():
    def run(box, r):
        box.clear()
        return r() is None

    compiled = tenon.compile(run)
    for _ in range(3):
        box = [Object(1)]
        r = weakref.ref(box[0])
        dead = compiled(box, r)
        assert dead


def test_what_a_local_holds_is_alive_after_older_objects_changed():
    def run(holder, r):
        holder.calls += 1
        kept = holder.kept
        return r() is kept

    holder = Object()
    holder.kept, holder.calls = Object(1), 0
    assert tenon.compile(run, fullgraph=True)(holder, weakref.ref(holder.kept))
    assert holder.calls == 1


def test_callbacks_are_called_once():
    def run(log):
        first = Object()
        one, other = weakref.ref(first, lambda gone: log.append("one")), weakref.ref(first, lambda gone: log.append("other"))
        log.append("made")
        del first
        log.append((one(), other()))
        kept = weakref.WeakValueDictionary()
        second = Object()
        kept["second"] = second
        log.append(len(kept))
        del second
        log.append(len(kept))

    compiled = tenon.compile(run)
    for _ in range(3):
        got, want = [], []
        compiled(got)
        run(want)
        assert got == want
