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


def dropped_tensor(x):
    t = x.exp()
    r = weakref.ref(t)
    u = t + 1
    t = None
    return u, r() is None


def dropped_with_its_frame(x):
    def looked_at(t):
        return weakref.ref(t)

    return looked_at(x + 1)() is None


def dropped_after_a_break(x):
    t = x.exp()
    tenon.graph_break()
    r = weakref.ref(t)
    t = t + 1
    return t, r() is None


def held_tensor(x):
    t = x.exp()
    r = weakref.ref(t)
    held = [t]
    del t
    before = r() is None
    held.clear()
    return before, r() is None


def given(x):
    r = weakref.ref(x)
    del x
    return r() is None


@pytest.mark.parametrize("fn", [dropped_tensor, dropped_with_its_frame, dropped_after_a_break, held_tensor, given])
def test_tensors(check, fn):
    torch = pytest.importorskip("torch")
    compiled = tenon.compile(fn)
    for x in (torch.ones(2), torch.ones(2, requires_grad=True)):
        for _ in range(2):
            check.same(compiled(x), fn(x))


def test_what_an_object_held_that_is_let_go():
    def run():
        owner = Object()
        owner.held = Object()
        r = weakref.ref(owner.held)
        tenon.graph_break()
        before = r() is None
        del owner
        return before, r() is None

    compiled = tenon.compile(run)
    for _ in range(2):
        assert compiled() == run() == (False, True)


def test_what_an_older_object_held():
    def looked_at():
        owner = Object()
        tenon.graph_break()
        held = Object()
        owner.held = held
        return owner, weakref.ref(held)

    def run():
        owner, r = looked_at()
        before = r() is None
        del owner
        return before, r() is None

    compiled = tenon.compile(run)
    for _ in range(2):
        assert compiled() == run() == (False, True)


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
