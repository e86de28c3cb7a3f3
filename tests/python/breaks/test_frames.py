"""What code that runs at a break sees of the frames below it."""
import gc
import inspect
import linecache
import logging
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import tenon

UP = np.arange(1.0, 6.0)


def plain(value):
    """A local variable as something that compares."""
    return value.tolist() if isinstance(value, np.ndarray) else value


@tenon.disable
def look(depth=3):
    """The names, lines and locals of the callers."""
    frame, found = sys._getframe(2), []
    for _ in range(depth):
        found.append((frame.f_code.co_name, frame.f_lineno, {k: plain(v) for k, v in frame.f_locals.items() if isinstance(v, (int, float, str, list, np.ndarray))}))
        frame = frame.f_back
    return found


def run_both(fn, *args):
    compiled = tenon.compile(fn)
    want = fn(*args)
    for _ in range(3):
        yield compiled(*args), want
    assert tenon.stats()["graph_breaks"] > 0 and tenon.stats()["eager_fallbacks"] == 0


def test_callers_lines_and_locals():
    def inner(a, k):
        b = a * k
        seen = look(2)
        return b + 1, seen

    def fn(x):
        y = x + 1
        z, seen = inner(y, 3)
        return z, seen

    for (got, seen), (want, expected) in run_both(fn, UP):
        np.testing.assert_allclose(got, want)
        assert seen == expected


def test_locals_and_eval():
    def fn(x):
        y, k = x * 2, 4
        names = sorted(locals())
        total = eval("k + float(y.sum())")
        return y + total, names

    for (got, names), (want, expected) in run_both(fn, UP):
        np.testing.assert_allclose(got, want)
        assert names == expected


def test_the_frame_stays_one_object_and_readable():
    kept = []

    def note():
        kept.append(sys._getframe(1))

    def fn(x):
        first = x + 1
        note()
        second = first * 2
        note()
        return second

    for way in (tenon.compile(fn), fn) * 3:
        kept.clear()
        np.testing.assert_allclose(way(UP), (UP + 1) * 2)
        one, other = kept
        assert one is other and one.f_code is fn.__code__
        assert set(one.f_locals) >= {"x", "first", "second"}


@pytest.mark.skipif(sys.version_info < (3, 13), reason="f_locals writes through from 3.13 on")
def test_a_write_through_f_locals():
    def set_u():
        sys._getframe(1).f_locals["u"] = 5.0

    def fn(x):
        u = 1.0
        y = x + u
        set_u()
        return y * u

    for got, want in run_both(fn, UP):
        np.testing.assert_allclose(got, want)


def test_warnings_name_the_line():
    def fn(x):
        y = x + 1
        warnings.warn("look here", UserWarning, stacklevel=1)
        return y * 2

    compiled = tenon.compile(fn)
    for way in (fn, compiled, compiled, compiled):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            np.testing.assert_allclose(way(UP), (UP + 1) * 2)
        (one,) = caught
        assert one.filename == __file__ and "look here" in linecache.getline(one.filename, one.lineno)


def test_logging_names_function_and_line(caplog):
    logger = logging.getLogger("breaks")

    def helper(x):
        logger.warning("sum %s", x.shape)
        return x - 1

    def fn(x):
        return helper(x * 2) + 1

    for _ in run_both(fn, UP):
        pass
    assert len({(r.funcName, r.lineno, r.getMessage()) for r in caplog.records}) == 1 and caplog.records[0].funcName == "helper"
    assert len(caplog.records) == 4


def test_the_stack_that_inspect_shows():
    def names():
        return [frame.function for frame in inspect.stack()[1:4]]

    def inner(x):
        y = x + 1
        return y, names()

    def fn(x):
        return inner(x * 2)

    for (got, seen), (want, expected) in run_both(fn, UP):
        np.testing.assert_allclose(got, want)
        assert seen == expected


def test_super_and_class_cells():
    class Base:
        def run(self, x):
            print(end="")
            return x + 1

    class Child(Base):
        def run(self, x):
            print(end="")
            return super().run(x) * 2, __class__.__name__

    for (got, name), (want, expected) in run_both(lambda x: Child().run(x), UP):
        np.testing.assert_allclose(got, want)
        assert name == expected


def test_objects_die_when_the_program_drops_them():
    events = []

    class Token:
        def __init__(self, name):
            self.name = name

        def __del__(self):
            events.append("dead " + self.name)

    def fn(x):
        token = Token("a")
        y = x + 1
        print(end="")
        del token
        events.append("dropped")
        print(end="")
        return y * 2

    compiled = tenon.compile(fn)
    for way in (fn, compiled, compiled):
        events.clear()
        np.testing.assert_allclose(way(UP), (UP + 1) * 2)
        assert events == ["dead a", "dropped"]


def test_nothing_is_kept_after_the_call():
    class Box:
        pass

    def fn(x, box):
        y = x + 1
        print(end="")
        inner = Box()
        inner.y = y
        refs.append(weakref.ref(inner))
        print(end="")
        return y

    compiled, refs = tenon.compile(fn), []
    for _ in range(3):
        box = Box()
        count = sys.getrefcount(box)
        compiled(UP, box)
        assert sys.getrefcount(box) == count
    assert [ref() for ref in refs] == [None] * 3


def test_threads_through_one_function():
    def fn(x, n):
        for k in range(n):
            x = x * 1.5
            if x.sum() > 40:
                x = x - k
            print(end="")
        return x

    compiled, wrong = tenon.compile(fn), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for n in range(30):
            x = rng.standard_normal(4) + 2
            if not np.allclose(compiled(x, n % 4), fn(x, n % 4)):
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_break_that_calls_the_same_function():
    def fn(x, n):
        y = x + 1
        if n:
            y = y + tenon.disable(compiled)(x, n - 1)
        return y * 2

    compiled = tenon.compile(fn)
    for _ in range(3):
        np.testing.assert_allclose(compiled(UP, 3), fn(UP, 3))


def test_a_reset_in_the_middle():
    def fn(x):
        y = x + 1
        tenon.disable(tenon.reset)()
        return y * 2

    compiled = tenon.compile(fn)
    for _ in range(4):
        np.testing.assert_allclose(compiled(UP), fn(UP))


def test_a_handled_exception_goes_with_its_handler():
    class Held:
        pass

    found = []

    @tenon.disable
    def fails():
        held = Held()
        found.append(weakref.ref(held))
        raise IndexError

    def fn(x):
        try:
            fails()
        except IndexError as error:
            x = x * 2
        return x + 1

    gc.disable()
    try:
        for way in (fn, tenon.compile(fn)) * 3:
            np.testing.assert_allclose(way(UP), UP * 2 + 1)
            assert found[-1]() is None
    finally:
        gc.enable()


def test_special_methods_that_are_bound_across_a_break(breaks):
    def of_result(x):
        get, put = (x * 2).__getitem__, x.__setitem__
        tenon.graph_break()
        put(0, 5.0)
        return get(0) + 1, x

    def of_argument(x):
        get = x.__getitem__
        tenon.graph_break()
        return get(0) + 1

    breaks(of_result, (np.arange(4.0),), (np.arange(5.0),))
    breaks(of_argument, (np.arange(4.0),), (np.array(3.0),))


def test_a_break_at_an_instruction_without_a_line_names_the_line_before():
    def run(x):
        try:
            try:
                return f"{x[0]:x}"
            except TypeError as error:
                return type(error).__name__
        except ValueError as error:
            return str(error)

    explanation = tenon.explain(run)(np.ones(2))
    assert "format code" in explanation.result
    lines = [reason.user_stack[-1].lineno for reason in explanation.break_reasons]
    assert len(lines) > 1 and min(lines) > run.__code__.co_firstlineno


def test_a_frame_says_where_it_is_when_it_is_asked():
    def fn(x):
        frame = sys._getframe()
        first = frame.f_lineno
        x = x + 1
        second = frame.f_lineno
        return x, first, second, sorted(frame.f_locals)

    def from_a_traceback(x):
        try:
            x.nothing
        except AttributeError as error:
            traceback = error.__traceback__
        x = x * 2
        return x, traceback.tb_lineno, traceback.tb_frame.f_lineno

    for program in (fn, from_a_traceback):
        compiled = tenon.compile(program)
        for _ in range(3):
            got, want = compiled(UP), program(UP)
            np.testing.assert_array_equal(got[0], want[0])
            assert got[1:] == want[1:]


def test_what_is_raised_again_shows_where_it_was_raised_first():
    class Passing:
        def __enter__(self):
            return self

        def __exit__(self, *what):
            pass

    def inside(x):
        with Passing():
            return x.nothing

    def named(x):
        try:
            x.nothing
        except AttributeError as error:
            return error.missing

    def fn(program, x):
        try:
            program(x)
        except AttributeError as error:
            traceback = error.__traceback__.tb_next
        return traceback.tb_lineno, traceback.tb_frame.f_lineno

    for program in (inside, named):
        compiled = tenon.compile(fn)
        assert [compiled(program, UP) for _ in range(3)] == [fn(program, UP)] * 3


def test_no_source_is_kept_that_the_program_has_not_asked_for():
    def run(x):
        y = x + 1
        tenon.graph_break()
        return y * 2, __file__ in linecache.cache

    linecache.clearcache()
    compiled = tenon.compile(run)
    for _ in range(2):
        np.testing.assert_equal(compiled(UP), run(UP))
    assert tenon.explain(run)(UP).break_reasons[0].user_stack[-1].line == "tenon.graph_break()"
