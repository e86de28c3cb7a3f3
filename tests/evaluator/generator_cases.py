"""Generators: driven inside the call, by hand and by other generators, and those that leave it."""
import contextlib
import types


def gen_throw(a):

    def g():
        try:
            x = (yield 1)
            yield x
        except ValueError as e:
            yield ('caught', str(e))
        finally:
            out.append('fin')
    out = []
    i = g()
    next(i)
    r = i.throw(ValueError('v'))
    l = list(i)
    j = g()
    next(j)
    j.close()
    return (r, l, out)


def yield_from(a):

    def inner():
        try:
            got = (yield 1)
            yield got
        except KeyError:
            yield 'key'
        return 'ret'

    def outer():
        r = (yield from inner())
        yield r
    o = outer()
    n = [next(o), o.send('s')]
    n += list(o)
    p = outer()
    next(p)
    n.append(p.throw(KeyError('x')))
    n += list(p)
    return n


def gen_stop_iteration(a):

    def g():
        yield 1
        return 5
    i = g()
    next(i)
    try:
        next(i)
    except StopIteration as e:
        return e.value


def gen_runtime_error(a):

    def g():
        yield 1
        raise StopIteration
    try:
        list(g())
    except RuntimeError as e:
        return str(e)


def generator_in_with(a):

    @contextlib.contextmanager
    def cm(v):
        log.append('in')
        try:
            yield (v * 2)
        except ValueError:
            log.append('val')
        finally:
            log.append('out')
    log = []
    with cm(a) as v:
        r = v
    with cm(a) as v:
        raise ValueError
    return (r, log)


def generators_escape(a):

    def g():
        for i in range(3):
            yield (a * i)
    return (sum((1 for _ in g())), list(zip(g(), [1, 2])))


def generator_returned(a):

    def g():
        yield a
        yield 2
    return (next(g()), list(g()))


def gen_misuse(a):
    """What a generator answers that has not started, that runs, and that has ended."""
    out = []

    def attempt(call, *args):
        try:
            out.append(call(*args))
        except Exception as error:
            out.append((type(error).__name__, str(error)))

    def body(n):
        try:
            got = yield n
            yield got
        except ValueError:
            yield 'caught'
        except GeneratorExit:
            return 'closed'

    fresh = body(1)
    attempt(fresh.send, 5)
    attempt(fresh.send, None)
    attempt(fresh.send, 5)
    fresh.close()
    attempt(fresh.send, 5)
    unstarted = body(n=2)
    attempt(unstarted.throw, ValueError)
    attempt(next, unstarted)
    left = body(3)
    left.close()
    attempt(next, left, 'ended')

    def own():
        attempt(next, itself)
        attempt(itself.send, None)
        attempt(itself.throw, KeyError)
        attempt(itself.close)
        yield 1

    itself = own()
    attempt(next, itself)
    attempt(next, itself)
    return out, a


def gen_type(a):
    def g():
        yield a
        yield 1

    running = g()
    next(running)
    squares = (n * n for n in (1, 2))
    return type(running) is types.GeneratorType, isinstance(squares, types.GeneratorType), type(squares).__name__, list(squares), running.__class__.__name__
