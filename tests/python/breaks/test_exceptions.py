"""Exceptions at and around breaks: handlers, cleanup, context, tracebacks."""
import contextlib
import functools

import numpy as np
import pytest

import tenon

UP, DOWN = np.arange(1.0, 6.0), -np.arange(1.0, 6.0)


class Oops(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


def fail(x):
    raise Oops(int(x.sum()))


def test_what_nobody_handles(breaks):
    def inner(x):
        y = x * 2
        if y.sum() > 0:
            raise ValueError("too large", 3)
        return y

    def fn(x):
        return inner(x + 1) + 1

    breaks(fn, (UP,), (DOWN * 3,), fallbacks=2, settled=False)


def test_an_exception_out_of_a_disabled_function(breaks):
    loud = tenon.disable(fail)

    def fn(x):
        y = x + 1
        return loud(y) * 2

    breaks(fn, (UP,))


@pytest.mark.parametrize("call", [lambda x: {}["k"], lambda x: [][1], lambda x: x.nothing, lambda x: int("a"), lambda x: x + "a", lambda x: x.shape(),
                                  lambda x: undefined, lambda x: fail(), lambda x: 1 / 0, lambda x: x @ np.ones((3, 3, 3)), lambda x: [*None], lambda x: next(iter([]))])
def test_errors_of_python_and_numpy_are_the_same(call):
    def fn(x):
        y = x + 1
        return call(y)

    compiled = tenon.compile(fn)
    for _ in range(3):
        with pytest.raises(Exception) as got:
            compiled(UP)
        with pytest.raises(Exception) as want:
            fn(UP)
        assert type(got.value) is type(want.value) and str(got.value) == str(want.value)
        assert [(e.name, e.lineno) for e in got.traceback][1:] == [(e.name, e.lineno) for e in want.traceback][1:]


def test_a_handler_in_the_same_frame(breaks):
    def fn(x):
        y = x + 1
        try:
            y = y * 2
            if y.sum() > 0:
                raise Oops(7)
            y = y - 1
        except Oops as error:
            y = y * error.code
        except ValueError:
            y = y * 0
        else:
            y = y + 100
        finally:
            y = y + 1
        return y

    breaks(fn, (UP,), (DOWN * 4,))


def test_a_handler_two_frames_up(breaks):
    def third(x):
        print(end="")
        raise Oops(3)

    def second(x):
        try:
            return third(x * 2)
        finally:
            x[0] = 9.0

    def fn(x):
        y = x * 1
        try:
            second(y)
        except Oops as error:
            return y * error.code, [frame.tb_lineno for frame in walk(error.__traceback__)]

    breaks(fn, (UP,))


def walk(traceback):
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def test_breaks_inside_a_handler_and_raising_again(breaks):
    def fn(x, how):
        try:
            fail(x)
        except Oops as error:
            print(end="")
            x = x + error.code
            if how == 0:
                raise
            if how == 1:
                raise ValueError("instead") from error
            if how == 2:
                raise ValueError("meanwhile")
        return x * 2

    breaks(fn, *[(UP, how) for how in range(4)])


def test_nested_handlers_keep_the_exception_that_is_handled(breaks):
    import sys

    def fn(x):
        seen = []
        try:
            fail(x)
        except Oops:
            seen.append(type(sys.exc_info()[1]).__name__)
            try:
                {}["k"]
            except KeyError:
                print(end="")
                seen.append(type(sys.exc_info()[1]).__name__)
            seen.append(type(sys.exc_info()[1]).__name__)
        seen.append(sys.exc_info()[1])
        return x + 1, seen

    breaks(fn, (UP,))


def test_called_while_something_is_handled(check):
    import sys

    def fn(x):
        try:
            int("a")
        except ValueError:
            print(end="")
            x = x + 1
        return x * 2, repr(sys.exc_info()[1])

    compiled = tenon.compile(fn)
    for _ in range(3):
        check.same(compiled(UP), fn(UP))
        try:
            {}["outer"]
        except KeyError as outer:
            check.same(compiled(UP), fn(UP))
            assert sys.exc_info()[1] is outer
        assert sys.exc_info()[1] is None


def test_a_handler_that_begins_after_one_that_broke(breaks, check):
    def fn(x):
        try:
            fail(x)
        except Oops:
            print(end="")
        try:
            {}["k"]
        except KeyError as error:
            return x * 2, error.__context__
        return x

    breaks(fn, (UP,))
    compiled = tenon.compile(fn)
    for _ in range(3):
        assert compiled(UP)[1] is None
        try:
            {}["outer"]
        except KeyError as outer:
            result, context = compiled(UP)
            check.same(result, UP * 2)
            assert context is outer
    assert tenon.stats()["eager_fallbacks"] == 0


def test_with_blocks(breaks):
    log = []

    @contextlib.contextmanager
    def note(name, swallow=False):
        log.append("enter " + name)
        try:
            yield name
        except Oops:
            log.append("error " + name)
            if not swallow:
                raise
        finally:
            log.append("exit " + name)

    def fn(x, swallow):
        with note("outer", swallow) as name:
            x = x + len(name)
            with note("inner"):
                print(end="")
                x = x * 2
                fail(x)
        return x + 1

    breaks(fn, (UP, True), (UP, False))
    assert log == ["enter outer", "enter inner", "error inner", "exit inner", "error outer", "exit outer"] * 12


def test_a_context_manager_of_a_class(breaks):
    class Scope:
        def __init__(self):
            self.events = []

        def __enter__(self):
            print(end="")
            self.events.append("in")
            return self

        def __exit__(self, kind, value, traceback):
            self.events.append(kind and kind.__name__)
            print(end="")
            return kind is Oops

    def fn(x):
        scope = Scope()
        with scope as inside, contextlib.suppress(KeyError):
            x = x + 1
            if x.sum() > 0:
                fail(x)
            {}["k"]
        return x * 2, inside.events

    breaks(fn, (UP,), (DOWN * 3,))


def test_return_in_finally_and_loops(breaks):
    def fn(x):
        for n in range(3):
            try:
                print(end="")
                if n == 1:
                    continue
                x = x * 2
                if x.sum() > 30:
                    return x, n
            finally:
                x = x + 1
        return x, "end"

    breaks(fn, (UP,), (UP * 9,), (DOWN,))


def test_an_exception_that_is_kept(breaks):
    def fn(x):
        kept = None
        try:
            fail(x)
        except Oops as error:
            kept = error
        print(end="")
        return x + 1, str(kept), kept.code, [entry.tb_lineno for entry in walk(kept.__traceback__)]

    breaks(fn, (UP,))


def test_stop_iteration_and_generator_errors(breaks):
    def produce(x):
        yield x
        raise Oops(1)

    def fn(x):
        try:
            for value in produce(x):
                print(end="")
                x = x + value
        except Oops as error:
            x = x * (error.code + 1)
        it = iter([x])
        next(it)
        try:
            next(it)
        except StopIteration:
            x = x + 1
        return x

    breaks(fn, (UP,))


def test_assertions(breaks):
    space = {}  # as text, because pytest rewrites the assertions of this file
    exec("def fn(x):\n    y = x + 1\n    assert y.sum() > 0, f'sum is {float(y.sum())}'\n    return y", space)
    breaks(space["fn"], (UP,), (DOWN * 3,), fallbacks=2, settled=False)


def test_a_traceback_that_is_handed_on_stays_in_the_graph():
    class Scope:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, traceback):
            self.had = traceback is not None and value.__traceback__ is traceback
            return True

    def fn(x):
        scope = Scope()
        with scope:
            x = x + 1
            raise Oops(1)
        return x * 2, scope.had

    got = tenon.compile(fn, fullgraph=True)(UP)
    assert np.array_equal(got[0], fn(UP)[0]) and got[1] is True


def test_a_traceback_that_is_looked_into_is_eagers(breaks):
    class Scope:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, traceback):
            self.lines = [entry.tb_lineno for entry in walk(traceback)]
            return True

    def fn(x):
        scope = Scope()
        with scope:
            x = x + 1
            raise Oops(1)
        return x * 2, scope.lines

    breaks(fn, (UP,))


def test_a_callback_of_c_code_that_raises():
    def fn(items, first):
        return functools.reduce(lambda p, q: p + q, items, first)

    compiled = tenon.compile(fn)
    for _ in range(2):
        with pytest.raises(TypeError, match="can only concatenate tuple"):
            compiled(["x", "y"], (1, 2))
        assert compiled(["x", "y"], "a") == "axy"
