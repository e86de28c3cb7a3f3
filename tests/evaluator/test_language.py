"""Python as people write it, evaluated and executed: the results must be the same."""
import collections
import functools
import math
import operator
from fractions import Fraction

from harness import Number, check, double, zero

x, y = Number(3.0), Number(5.0)


def test_arithmetic_is_recorded():
    captured = check(lambda a, b: (a + b) * 2 - a / b, x, y)
    assert len(captured.outputs) == 1


def test_constants_are_folded():
    check(lambda a: a * (2 + 3 * 4 ** 2 // 5 % 7), x)


def test_locals_and_unpacking():
    def fn(a, b):
        c, d = a + 1, b * 2
        (e, f), *g = (c, d), a, b, 4
        [h, *i, j] = [1, 2, 3, 4]
        return e, f, g, h, i, j

    check(fn, x, y)


def test_defaults_and_variadic_arguments():
    def inner(a, b=2, *rest, c=3, **more):
        return a * b + c, rest, more

    def fn(a):
        return inner(a), inner(a, 1, 2, 3), inner(a, c=9, d=4), inner(*(a, 5), **{"c": 1, "k": a})

    check(fn, x)


def test_keyword_arguments_of_the_call():
    check(lambda a, *, scale=1, **more: (a * scale, sorted(more)), x, scale=4, z=1, w=2)


def test_closures_and_nonlocal():
    def fn(a):
        total = a

        def add(v):
            nonlocal total
            total = total + v
            return total

        add(1)
        add(a)
        return total, (lambda k: k * total)(2)

    check(fn, x)


def test_recursion():
    def power(a, n):
        return a if n == 1 else a * power(a, n - 1)

    check(power, x, 5)


def test_loops():
    def fn(a, n):
        total = zero()
        for i in range(n):
            if i == 1:
                continue
            if i == 4:
                break
            total = total + a * i
        else:
            total = total + 100
        while n > 0:
            n -= 1
            total = total - n
        for k, (p, q) in enumerate(zip([1, 2], (3, 4))):
            total = total + k * p * q
        return total

    check(fn, x, 3)
    check(fn, x, 8)


def test_comprehensions():
    def fn(a):
        k = 2
        return [a * i for i in range(3) if i != 1], {i: a + i * k for i in range(2)}, {i % 2 for i in range(5)}, tuple(a * j for j in (1, 2)), [[i * j for j in range(i)] for i in range(3)]

    check(fn, x)


def test_generators():
    def gen(a, n):
        for i in range(n):
            got = yield a * i
            if got is not None:
                return got
        yield from [a, 1]
        return 4

    def fn(a):
        g = gen(a, 3)
        first = next(g)
        try:
            g.send(a)
        except StopIteration as stop:
            value = stop.value
        return first, value, list(gen(a, 2)), sum(gen(a, 2)), [v for v in gen(a, 1)], max(i for i in range(4)), next(gen(a, 0), None)

    check(fn, x)


def test_strings():
    def fn(a, n):
        name = f"{n}d-{'x'.join(map(str, (1, n)))}-{n!r:>4}-{n:03d}"
        return a * len(name), name, name.upper().split("-"), "%d %s" % (n, "q"), "{} {k}".format(n, k=2)

    check(fn, x, 7)


def test_containers():
    def fn(a):
        d = collections.OrderedDict(b=a, a=a + 1)
        d.move_to_end("b")
        q = collections.deque([a], maxlen=2)
        q.append(a * 2), q.append(a * 3)
        s = {1, 2} | {3}
        c = collections.defaultdict(list)
        c["k"].append(a)
        items = [3, 1, 2]
        items.sort(key=lambda v: -v)
        items[1:2] = [7, 8]
        del items[0]
        return dict(d), list(q), len(s), dict(c), [*d.keys()], {**d, "z": 1}, items, items[::-1], (1, 2) + (3,), [0] * 2

    check(fn, x)


def test_sorted_min_max_with_keys():
    check(lambda a: (sorted([3, 1, 2], key=lambda v: -v), min([4, 2], key=operator.neg), max("a", "b"), sorted("cab", reverse=True)), x)


def test_exceptions_raised_and_caught_inside():
    class Mine(Exception):
        pass

    def thrower(n):
        if n:
            raise Mine("one", n)
        return n

    def fn(a):
        out = []
        for key in ("a", "b"):
            try:
                out.append(a * {"a": 2}[key])
            except KeyError as e:
                out.append(a + len(str(e)))
            else:
                out.append(1)
            finally:
                out.append(a)
        try:
            thrower(3)
        except (ValueError, Mine) as e:
            out.append(e.args)
        try:
            try:
                raise ValueError("v")
            except ValueError as e:
                raise Mine("m") from e
        except Mine as e:
            out.append(type(e.__cause__).__name__)
        return out

    check(fn, x)


def test_exception_context_is_pythons():
    def fn(a):
        try:
            try:
                raise ValueError("v")
            except ValueError:
                raise KeyError("k")
        except KeyError as e:
            return a, type(e.__context__).__name__

    check(fn, x)


def test_with():
    class Note:
        def __init__(self, log, swallow=False):
            self.log, self.swallow = log, swallow

        def __enter__(self):
            self.log.append("in")
            return self

        def __exit__(self, kind, value, traceback):
            self.log.append(kind.__name__ if kind else "out")
            return self.swallow

    def fn(a):
        log = []
        with Note(log) as n, Note(log, True):
            a = a + 1
            raise KeyError
        with n:
            a = a * 2
        return a, log

    check(fn, x)


def test_context_manager_from_a_generator():
    import contextlib

    def fn(a):
        log = []

        @contextlib.contextmanager
        def note(name):
            log.append("enter " + name)
            try:
                yield name
            finally:
                log.append("exit " + name)

        with note("a") as name:
            a = a + len(name)
        with contextlib.suppress(KeyError):
            {}["k"]
        return a, log

    check(fn, x)


def test_functools():
    def fn(a):
        return functools.partial(operator.add, a)(2), functools.reduce(lambda p, q: p * q, [a, a, 2]), list(map(lambda v: v + 1, [a, 1])), any(v > 2 for v in (1, 2, 3)), all([])

    check(fn, x)


def test_match():
    def fn(a, shape):
        match shape:
            case (n, 3) if n > 5:
                return a - 1
            case (2, 3):
                return a + 1
            case {"k": v, **rest}:
                return a * v, rest
            case Fraction(numerator=n):
                return a * n
            case str() | None:
                return a * 7
            case _:
                return a

    for shape in ((6, 3), (2, 3), {"k": 4, "z": 1}, (1,), Fraction(3, 4), "text", None):
        check(fn, x, shape)


def test_builtins_on_plain_values():
    def fn(a, n):
        return divmod(7, n), round(2.567, 1), abs(-n), pow(n, 2), n if n > 2 else 0, -(n << 2) | 1, ~n, not n, math.sqrt(n), int("12"), float(n), str(n), list(reversed([1, 2])), callable(fn), chr(65), hex(n), bool([])

    check(fn, x, 3)


def test_chained_comparison_and_walrus():
    check(lambda a, n: (1 < n < 5, 1 < n < 2, (m := n + 1) * m, n in (1, 3), n not in [3], n is None), x, 3)


def test_recorded_function_is_taken_whole():
    captured = check(lambda a: double(a) + zero(), x)
    assert captured.outputs[0].args[0].op is double


def test_nested_functions_called_in_loops_and_returned():
    def fn(a):
        fs = [lambda v, i=i: v * i for i in range(3)]
        return [f(a) for f in fs]

    check(fn, x)


def test_results_that_are_functions():
    def fn(a):
        k = 3

        def inner(v):
            return v * k + a

        return inner

    from harness import Captured

    captured = Captured(fn, (x,))
    assert captured(x)(2) == fn(x)(2)


def test_imports_inside_functions():
    def fn(a):
        import math as m
        from collections import OrderedDict
        import os.path

        return a + m.floor(2.5), list(OrderedDict(k=1)), os.path.sep

    check(fn, x)


def test_assert_and_conditional_expressions():
    def fn(a, n):
        assert n > 1, "message"
        return a if n else -a

    check(fn, x, 2)


def test_star_expressions():
    check(lambda a, items: ([*items, a], {*(1, 2)}, (*items, *items), max(*items)), x, [1, 2])


def test_deleting_and_rebinding_locals():
    def fn(a):
        b = a
        del b
        try:
            return b
        except UnboundLocalError:
            return a + 1

    check(fn, x)
