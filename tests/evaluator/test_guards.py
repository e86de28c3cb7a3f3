"""Whatever a capture read is guarded: each thing changed makes the segment fail, and names what changed."""
import pytest

from harness import Captured, Number, breaks, check

x, y = Number(3.0), Number(5.0)
LIMIT = 3
TABLE = {"k": [1, 2, 3]}


def fails_after(captured, args, change, source=None):
    """The segment holds, then `change()` breaks a guard. Gives the failure."""
    assert captured.check(args), captured.explain(args)
    change()
    assert not captured.check(args)
    failure = captured.explain(args)
    assert failure is not None
    if source is not None:
        assert source in failure[0], failure
    return failure


@pytest.fixture
def restored():
    yield
    global LIMIT
    LIMIT = 3
    TABLE.clear()
    TABLE["k"] = [1, 2, 3]


def test_arguments_by_value_and_type():
    captured = check(lambda a, n: a * n, x, 2)
    assert not captured.check((x, 3)) and not captured.check((x, 2.0)) and not captured.check((x, True))
    assert captured.explain((x, 3)) == ("n", "n == 2", "2", "3")


def test_floats_by_bits():
    captured = check(lambda a, f: a * f, x, 0.0)
    assert not captured.check((x, -0.0))
    nan = float("nan")
    captured = Captured(lambda a, f: a * f, (x, nan))
    assert captured.check((x, float("nan")))


def test_signature():
    captured = check(lambda a, *rest, **more: (a, rest, more), x, 1, k=2)
    assert not captured.check((x,), {"k": 2}) and not captured.check((x, 1)) and not captured.check((x, 1), {"q": 2})
    assert "positional" in captured.explain((x,), {"k": 2})[3]


def test_globals(restored):
    def fn(a):
        return a * LIMIT

    def change():
        global LIMIT
        LIMIT = 7

    failure = fails_after(check(fn, x), (x,), change, "LIMIT")
    assert failure[2:] == ("3", "7")


def test_global_that_hides_a_builtin():
    def fn(a):
        return a * len([1, 2])

    captured = check(fn, x)
    fn.__globals__["len"] = lambda v: 5
    try:
        assert not captured.check((x,))
        assert "len" in captured.explain((x,))[1]
    finally:
        del fn.__globals__["len"]
    assert captured.check((x,))


def test_closures_and_defaults():
    k = 2

    def fn(a, scale=[1.5]):
        return a * k + scale[0]

    def change_k():
        nonlocal k
        k = 9

    fails_after(check(fn, x), (x,), change_k)
    fails_after(check(fn, x), (x,), lambda: fn.__defaults__[0].__setitem__(0, 8.0), "__defaults__")
    fails_after(check(fn, x), (x,), lambda: setattr(fn, "__defaults__", ([1.5],)))
    inner = lambda v: v + 1
    outer = lambda a: inner(a)
    fails_after(check(outer, x), (x,), lambda: setattr(inner, "__code__", (lambda v: v + 2).__code__))


def test_containers(restored):
    def fn(a):
        return a + TABLE["k"][1] + len(TABLE)

    fails_after(check(fn, x), (x,), lambda: TABLE["k"].__setitem__(1, 70), "TABLE['k'][1]")
    fails_after(check(fn, x), (x,), lambda: TABLE.__setitem__("other", 1), "TABLE")
    fails_after(check(fn, x), (x,), lambda: TABLE.__setitem__("k", (1, 2)), "TABLE['k']")


def test_missing_is_a_read():
    d, o = {"a": 1}, type("Box", (), {})()
    fails_after(check(lambda a: (a, d.get("b", 3), "c" in d), x), (x,), lambda: d.__setitem__("b", 1))
    fails_after(check(lambda a: (a, "c" in d), x), (x,), lambda: d.__setitem__("c", 1))
    fails_after(check(lambda a: (a, getattr(o, "k", 2)), x), (x,), lambda: setattr(o, "k", 1))


def test_instance_and_class_attributes():
    class Op:
        k = 1

        def run(self, v):
            return v + self.k

    op = Op()
    captured = check(lambda a: op.run(a), x)
    fails_after(captured, (x,), lambda: setattr(op, "k", 5), "op")
    captured = check(lambda a: op.run(a), x)
    fails_after(captured, (x,), lambda: setattr(Op, "run", lambda self, v: v * 10))
    captured = check(lambda a: op.run(a), x)
    fails_after(captured, (x,), lambda: setattr(op, "run", lambda v: v - 4))
    captured = check(lambda a: op.run(a), x)
    assert captured.check((x,))

    class Other(Op):
        pass

    captured = check(lambda a, o: o.k * a, x, op)
    assert not captured.check((x, Other()))


def test_attribute_moved_to_a_base_class():
    class Base:
        pass

    class Derived(Base):
        pass

    d = Derived()
    captured = check(lambda a: getattr(d, "late", a), x)
    fails_after(captured, (x,), lambda: setattr(Base, "late", 1))


def test_slots():
    class Slotted:
        __slots__ = ("k", "v")

    s = Slotted()
    s.k = 2
    captured = check(lambda a: (a * s.k, hasattr(s, "v")), x)
    fails_after(captured, (x,), lambda: setattr(s, "k", 3))


def test_identity_of_arguments():
    fn = lambda a, b: a + 1 if a is b else a + b
    captured = check(fn, x, y)
    assert not captured.check((x, x))
    captured = Captured(fn, (x, x))
    assert captured.check((y, y)) and not captured.check((x, y))


def test_identity_of_containers():
    l, m = [1], [1]
    captured = Captured(lambda p, q: p is q, (l, m))
    assert captured.check((l, m)) and not captured.check((l, l))
    captured = Captured(lambda p, q: p is q, (l, l))
    assert captured.check((m, m)) and not captured.check((l, m))


def test_fresh_lambdas_hit():
    def make(k):
        return lambda v: v * k

    captured = check(lambda a, f: f(a), x, make(2))
    assert captured.check((x, make(2))) and not captured.check((x, make(3))) and not captured.check((x, lambda v: v))


def test_iteration_reads_all():
    d = {"a": 1, "b": 2}
    captured = check(lambda a: [k for k in d] + [a * v for v in d.values()] + list(d.items()), x)
    fails_after(captured, (x,), lambda: d.__setitem__("b", 5))
    captured = check(lambda a: [k for k in d], x)
    fails_after(captured, (x,), lambda: (d.pop("a"), d.__setitem__("a", 1)))
    s = {1, 2}
    captured = check(lambda a: (a, sum(s)), x)
    fails_after(captured, (x,), lambda: s.add(7))


def test_type_changed_in_place():
    class A:
        k = 1

    class B(A):
        k = 2

    o = A()
    captured = check(lambda a: a * o.k, x)
    fails_after(captured, (x,), lambda: setattr(o, "__class__", B))


def test_replaced_instance_dict():
    class A:
        pass

    o = A()
    o.k = 1
    captured = check(lambda a: a * o.k, x)
    fails_after(captured, (x,), lambda: setattr(o, "__dict__", {"k": 2}))


def test_breaks_name_the_place():
    def fn(a):
        if a > 1:
            return a
        return -a

    text = breaks(fn, x, reason="data-dependent")
    assert "if a > 1:" in text and "fn:" in text


def test_foreign_calls_break():
    import time

    breaks(lambda a: (a, time.time()), x, reason="time")
    breaks(lambda a: print(a), x, reason="print")


def test_uncaught_exceptions_break():
    def fn(a):
        raise KeyError("k")

    breaks(fn, x, reason="KeyError")


def test_object_with_a_finalizer_breaks():
    class Final:
        def __del__(self):
            pass

    breaks(lambda a: (Final(), a)[1], x, reason="__del__")


def test_guards_are_in_words():
    captured = check(lambda a, n: a * n + LIMIT, x, 2)
    assert "n == 2" in captured.guards and any("LIMIT == 3" in g for g in captured.guards)


def test_attributes_set_on_tensors_are_read_and_guarded():
    tagged = Number(1.0)
    tagged.tag = 5
    captured = check(lambda a: (a * getattr(a, "tag", 2), hasattr(a, "other")), tagged)
    assert not captured.check((Number(1.0),))
    plain = Number(1.0)
    captured = check(lambda a: a * getattr(a, "tag", 2), plain)
    fails_after(captured, (plain,), lambda: setattr(plain, "tag", 1))


def test_dropped_generator_with_work_left_breaks():
    def gen(a):
        try:
            yield a
        finally:
            SEEN.append(1)

    breaks(lambda a: next(gen(a)), x, reason="generator is dropped")


SEEN = []


def test_older_exceptions_and_views_break():
    error, view = KeyError("k"), {"a": 1}.keys()

    def fn(a):
        try:
            raise error
        except KeyError:
            return a

    breaks(fn, x, reason="older than the call")
    breaks(lambda a: (a, "a" in view), x)
    assert error.__traceback__ is None
