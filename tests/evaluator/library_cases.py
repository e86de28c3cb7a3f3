"""Programs about built-in types and the standard library; each takes a toy tensor."""
import bisect
import collections
import functools
import heapq
import itertools
import math
import numbers
import operator
import typing

from case_classes import Plain, sd


def strings(a):
    n = 3.14159
    s = 'héllo'
    return (f"""{n:.2f} {n!r} {s!a} {s:>8} {1000:,} {n:{8}.{2}} "x"={'x'!r}""", '%5.1f|%-4d|%s|%r|%x' % (n, 3, 'a', 'b', 255), '{0} {k!r:>5} {0[0]} {1.real}'.format('ab', 3, k='z'), s.encode(), b'ab'.decode(), 'a,b'.split(','), s.title(), 'ab'.join(['1', '2']), 'abc'[::-1], 'x'.zfill(4), ' a '.strip(), 'a-b'.partition('-'), 'aXb'.swapcase(), s.startswith(('h', 'z')), 'abc'.translate(str.maketrans('a', 'z')), 'a' * 3, 'a' in 'cat', '%(k)s' % {'k': 1}, str(b'x', 'ascii'), 'abc'.find('c'), ord('a'), chr(98), '1 2'.split(), 'é'.isalpha(), 'A'.lower(), bytes([1, 2]), 'a\n'.splitlines(), '{:>{w}}'.format(1, w=5), string.Template('$a').substitute(a=1) if False else 0)


def numbers_(a):
    return (2 ** 100, -7 // 2, -7 % 3, divmod(-7, 2), 7.5 // 2, 1e+308 * 10, float('nan') != float('nan'), (1 + 2j) * 3j, abs(-3), round(2.5), round(2.567, 2), int('ff', 16), bin(5), hex(255), oct(8), 1 << 70, ~5, 5 ^ 3, 5 & 3, 5 | 8, 3.0.is_integer(), 255 .to_bytes(2, 'big'), int.from_bytes(b'\x01\x00', 'big'), 5 .bit_length(), pow(3, 5, 7), True + 1, 1 == 1.0, complex(1, 2).conjugate(), math.pi, math.floor(-2.5), math.inf, float.fromhex('0x1p3'), 0.1 + 0.2, 1000, int(3.9), min(3, 1, 2), max([1, 5]), sum([1, 2.5]), math.isclose(1, 1 + 1e-12), math.gcd(12, 18), -0.0, 3 if a is None else 4, math.comb(5, 2), math.prod([1, 2, 3]))


def functools_(a):
    p = functools.partial(lambda *q, **k: (q, k), 1, z=2)

    @functools.wraps(strings)
    def w(*q):
        return q

    @functools.lru_cache(maxsize=None)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)
    return (p(3, y=a), functools.reduce(operator.add, [1, 2, 3], 10), w.__name__, fib(10), functools.partial(p, 5)(6))


def singledispatch_(a):
    return (sd(1), sd([]), sd('s'))


def cmp_to_key(a):
    return sorted([3, 1, 2], key=functools.cmp_to_key(lambda p, q: q - p))


def itertools_(a):
    return (list(itertools.chain([1], (2,))), list(itertools.islice(itertools.count(3), 4)), list(itertools.product('ab', repeat=2)), list(itertools.accumulate([1, 2, 3])), list(itertools.accumulate([1, 2, 3], lambda p, q: p * q)), [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])], list(itertools.zip_longest([1], [2, 3], fillvalue=0)), list(itertools.starmap(operator.add, [(1, 2)])), list(itertools.takewhile(lambda v: v < 2, [1, 2, 1])), list(itertools.permutations([1, 2])), [*itertools.repeat(a, 2)], list(itertools.pairwise([1, 2, 3])), list(itertools.filterfalse(None, [0, 1])), [list(t) for t in itertools.tee([1, 2])], list(itertools.compress('abc', [1, 0, 1])), list(itertools.chain.from_iterable([[1], [2]])), list(itertools.combinations([1, 2, 3], 2)), list(itertools.dropwhile(lambda v: v < 2, [1, 2, 1])))


def collections_(a):
    c = collections.Counter('abca')
    c.update('b')
    d = collections.deque([1, 2], 3)
    d.appendleft(0)
    cm = collections.ChainMap({'a': 1}, {'b': 2})
    dd = collections.defaultdict(lambda: [a])
    dd['x'].append(1)
    o = collections.OrderedDict()
    o['z'] = 1
    o['y'] = 2
    o.move_to_end('z')
    return (c.most_common(1), c['zz'], dict(c + c), list(d), d[-1], cm['b'], list(cm), dict(dd), list(o), c, dd, o, d)


def sorting(a):
    l = [('b', 2), ('a', 1)]
    l.sort(key=operator.itemgetter(1))
    m = sorted(l, key=lambda t: t[0], reverse=True)
    return (l, m, sorted({'b': 1, 'a': 2}.items()), list(reversed(l)), bisect.bisect([1, 2, 3], 2), heapq.nsmallest(2, [3, 1, 2]), min([[2], [1]], key=len), max({'a': 1, 'b': 3}.items(), key=lambda kv: kv[1]), any((v > 1 for v in [1, 2])), all([]), sorted('bac'))


def operator_(a):
    return (operator.itemgetter(1, 0)([4, 5]), operator.attrgetter('v')(Plain(3)), operator.methodcaller('upper')('a'), operator.add(a, 1), operator.setitem([1], 0, 2), operator.attrgetter('v.real', 'v')(Plain(3)), operator.contains([1], 1), operator.truth([]))


def abcs(a):
    return (isinstance([], collections.abc.Sequence), isinstance({}, collections.abc.Mapping), isinstance(1, numbers.Number), isinstance(lambda: 0, collections.abc.Callable), isinstance(3, (str, int)), isinstance(3, int | None), issubclass(bool, int), isinstance(iter([]), collections.abc.Iterator), callable(len), isinstance([], typing.Sequence), isinstance(Plain(1), collections.abc.Hashable))


def int_methods(a):
    return (10 .__add__(5), [1].__len__(), 'a'.__eq__('a'), 3 .__class__, dict.get({'a': 1}, 'a'), list.append([], 1), str.upper('a'), object.__eq__(1, 2), int.__add__(1, 2))


def set_ops(a):
    return ({1, 2} | {3}, {1, 2} & {2}, {1, 2} - {1}, {1, 2} ^ {2, 3}, {1} < {1, 2}, {1}.issubset([1, 2]), frozenset([1]) | {2}, {1, 2}.union([5]), set().isdisjoint([1]), {1: 2}.keys() & {1}, {1: 2}.items() | set(), {'a': 1}.keys() == {'a'})


def dict_ops(a):
    d = {'a': 1, 'b': a}
    return (d | {'c': 3}, d.items(), list(d.values()), dict(d, z=1), {k: v for k, v in d.items() if k == 'a'}, d == {'a': 1}, dict.fromkeys('ab', 0), d.pop('a'), d.setdefault('q', []), d.popitem(), sorted(d), dict([('k', 1)]), d.copy() is d)
