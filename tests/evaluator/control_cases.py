"""Programs about control flow, scopes and calls; each takes a toy tensor."""
import contextlib

from case_classes import Closer, Color, MyErr, Ops, P


def exceptions(a):
    out = []
    try:
        try:
            raise ValueError('a', 1)
        except (KeyError, ValueError) as e:
            out.append(e.args)
            raise KeyError('x') from e
        finally:
            out.append('f')
    except KeyError as e:
        out.append(type(e.__cause__).__name__)
        out.append(str(e))
    else:
        out.append('else')
    try:
        [][1]
    except IndexError as e:
        out.append(str(e))
    try:
        {}['k']
    except KeyError as e:
        out.append(e.args)
    try:
        int('x')
    except ValueError as e:
        out.append(str(e))
    try:
        a.nope
    except AttributeError:
        out.append('attr')
    try:
        None.foo
    except AttributeError as e:
        out.append(str(e))
    try:
        1 / 0
    except ZeroDivisionError as e:
        out.append(str(e))
    try:
        assert a is None, 'msg'
    except AssertionError as e:
        out.append(str(e))
    try:
        undefined_name
    except NameError as e:
        out.append(str(e))
    try:
        (1, 2) + [3]
    except TypeError as e:
        out.append(str(e))
    return (out, a)


def own_exceptions(a):

    def f():
        raise MyErr(3, 'm')
    try:
        f()
    except MyErr as e:
        return (e.code, str(e), e.args)


def exception_returned(a):
    return (MyErr(2, 'k'), ValueError(a))


def raise_in_finally(a):

    def f(n):
        for i in range(3):
            try:
                if i == n:
                    continue
                if i == 2:
                    return 'ret'
            finally:
                if n == 7:
                    break
        return 'end'
    return (f(0), f(2), f(7))


def exitstack(a):
    log = []
    with contextlib.ExitStack() as st:
        st.callback(log.append, 'c')
        v = st.enter_context(contextlib.nullcontext(a))
    with contextlib.suppress(KeyError, ValueError):
        raise KeyError
    with contextlib.closing(Closer(log)):
        pass
    return (v, log)


def match_(a):

    def f(v):
        match v:
            case 0 | 1:
                return 'small'
            case int(n) if n > 100:
                return ('big', n)
            case [p, q, *rest]:
                return (p, q, rest)
            case {'k': k, **more}:
                return (k, more)
            case P(x=1, y=yy):
                return yy
            case P(3, z):
                return ('pos', z)
            case str() as s:
                return s
            case Color.RED:
                return 'red'
            case None:
                return 'none'
            case []:
                return 'empty'
            case _:
                return 'other'
    return ([f(v) for v in (0, 101, [1, 2, 3], {'k': 1, 'j': 2}, P(1, 5), P(3, 4), 's', Color.RED, None, (), 5.5, (1, 2))], f([a, 1]))


def star_args(a):

    def f(p, /, q, *r, s=1, **t):
        return (p, q, r, s, t)
    l = [1, 2, 3]
    d = {'s': 5, 'z': a}
    return (f(1, 2), f(*l, *l, **d), f(0, *l, k=1), f(1, q=2, **{'w': 3}), [*l, *'ab', *d], {**d, 'y': 1}, (*l,), {*l, 9})


def walrus(a):
    if (n := len([1, 2])) > 1:
        m = n
    return ([y for z in range(4) if (y := (z * 2)) > 2], m, y, a)


def comprehension_scopes(a):
    k = 3
    return ([[i * k for i in range(j)] for j in range(3)], {i: (lambda: i)() for i in range(3)}, [f() for f in [lambda i=i: i + k for i in range(3)]], list(map(lambda q: q + k, [1])), {ord(c) - 97 for c in 'abca'})


def imports(a):
    import math as m, os.path
    from collections import OrderedDict as OD
    import json
    return (m.sqrt(4), OD([(1, 2)]), os.path.join('a', 'b'))


def recursion(a):

    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)
    return (fact(20), even(10), fact)


def delete_local(a):
    k = 1
    del k
    try:
        k
    except UnboundLocalError as e:
        return str(e)


def loops(a):
    out = []
    for i in range(5):
        if i == 1:
            continue
        if i == 3:
            break
        out.append(i)
    else:
        out.append('no')
    while True:
        out.append('w')
        if len(out) > 3:
            break
    for k, (p, *q) in {'x': (1, 2, 3)}.items():
        out.append((k, p, q))
    for i, v in enumerate(reversed([1, 2]), 5):
        out.append((i, v))
    return out


def slices(a):
    l = list(range(6))
    l[1:3] = [9]
    del l[::2]
    t = (1, 2, 3)[-2:]
    s = slice(1, None, 2)
    return (l, t, 'hello'[s], s, [1, 2, 3][s], s.indices(5), l[...] if False else 1)


def global_nonlocal(a):
    n = 0

    def inc():
        nonlocal n
        n += 1
        return n
    inc()
    inc()
    return (n, inc)


def chained(a):
    return (1 < 2 < 3, 3 > 2 > 2, 1 == 1 != 2, None is None, not [], [] or 'd', 0 and 1, 1 if [] else 2)


def with_multi(a):
    with Ops(1) as p, Ops(2) as q:
        r = p.v + q.v
    return r


def try_in_loop(a):
    r = []
    for k in [1, 'a', None, 2]:
        try:
            r.append(k + 1)
        except TypeError:
            r.append('t')
            continue
        finally:
            r.append('f')
    return r


def lambda_defaults(a):
    fs = [lambda v, i=i: v * i for i in range(3)]
    return ([f(a) for f in fs], fs[1])


def assert_(a):
    assert True
    return a
