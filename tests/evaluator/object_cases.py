"""Programs about classes, their instances and protocols; each takes a toy tensor."""
import copy
import dataclasses

from harness import Number
from case_classes import Ab, Co, Color, Dct, Derived, F, GetAttribute, I, It, Lst, N, New, Ops, P, Plain, Q, R, S, Seq, T, TO, WithDesc, WithMeta, mods


def objects_in_sets(a):
    p, q = (Plain(1), Plain(2))
    s = {p}
    s.add(q)
    d = {p: a, q: 2}
    return (p in s, q in d, d[p], len(s), Plain(3) in s)


def older_objects_in_sets(a):
    memo = set()
    out = []
    for m in mods + mods:
        if m not in memo:
            memo.add(m)
            out.append(m.v * a)
    return out


def dataclasses_(a):
    d = {P(1): a, P(2, 3): a * 2}
    q = Q(a)
    r = dataclasses.replace(q, k=4)
    return (d[P(1)], P(1) == P(1), P(1) in d, q, r, R(1) < R(2), sorted([R(3), R(1, 'b')]), hash(P(1)) == hash(P(1)), S(1, a), [f.name for f in dataclasses.fields(q)])


def dataclass_text(a):
    return (repr(P(1)), str(Q(1)), f'{P(2)}')


def asdict(a):
    return (dataclasses.asdict(P(1, 2)), dataclasses.astuple(P(1)))


def namedtuples(a):
    n = N(a)
    t = T(1, a)
    u = n._replace(b=a)
    x1, y1 = n
    return (n, t, u, t._asdict(), n.a, T._fields, N._make([1, 2]), t == T(1, a) if False else 0)


def enums(a):
    return (Color.RED, Color('g'), Color['RED'].value, Color.RED is Color.RED, Color.GREEN.name, [c.name for c in Color], I.ONE + 1, I(2), Color.RED in {Color.RED: 1}, len(Color), isinstance(Color.RED, Color), I.ONE < I.TWO)


def flags(a):
    return (F.A | F.B, bool(F.A & F.B), F.A in F.A | F.B)


def local_class(a):

    class C:
        z = 3

        def __init__(self, v):
            self.v = v

        def m(self):
            return self.v * self.z

        @property
        def p(self):
            return self.v

        @staticmethod
        def s(k):
            return k + 1

        @classmethod
        def c(cls, k):
            return cls(k)
    o = C(a)
    return (o.m(), o.p, C.s(1), C.c(2).m())


def local_class_super(a):

    class A:

        def f(self, k):
            return [k]

    class B(A):

        def f(self, k):
            return super().f(k) + [2]
    return (B().f(a), isinstance(B(), A), issubclass(B, A))


def local_exception(a):

    class Stop(Exception):
        pass
    try:
        raise Stop('s')
    except Stop as e:
        return str(e)


def inheritance(a):
    d = Derived(q=4)
    return (d(a), d.q, d.kind, d.dyn_x, getattr(d, 'no', 5), hasattr(d, 'dyn_'), hasattr(d, 'no'), d)


def descriptors(a):
    w = WithDesc()
    w.f = 3
    w.p = a
    r = [w.f, w.p, w.c, w.c, 'c' in w.__dict__]
    del w.f
    del w.p
    return (r, w.f, hasattr(w, '_p'), WithDesc.f.n)


def operators(a):
    o, p = (Ops(1), Ops(2))
    q = o
    q += 5
    r = [(o + p).v, (1 + p).v, -p == Ops(-2), p < Ops(3), len(o), bool(Ops(0)), o[1:2], 6 in o, list(o), o(1, k=2), 2 * p, {Ops(1): 2}[Ops(1)], Ops(4) in [Ops(4)], repr(p), f'{p:x}', str(p), [1, 2, 3][p], int(p), float(p), abs(p), round(p), round(p, 2), p @ 1, divmod(p, 1), p ** 2, pow(p, 2, 3), list(reversed(p)), q is o, not Ops(0), sum([Ops(1), Ops(2)], Ops(0)).v, max(Ops(1), Ops(3)).v, sorted([Ops(3), Ops(1)])[0].v, hash(Ops(3)) == 3]
    o[1] = a
    r.append(o.v)
    del o[1]
    r.append(o.v)
    with p as z:
        raise ValueError
    r.append(z.e is ValueError)
    return r


def total_ordering(a):
    return (TO(1) <= TO(2), TO(3) > TO(1), TO(1) >= TO(1))


def abc_own(a):
    try:
        Ab()
    except TypeError as e:
        r = 'abstract'
    return (isinstance(Co(), Ab), Co().f(), r)


def copies(a):
    p = Plain([1, {'k': a}])
    q = copy.copy(p)
    r = copy.deepcopy([1, {'k': (2, 3)}])
    return (q.v is p.v, r, copy.copy([1]), copy.copy({1: 2}))


def deepcopy_obj(a):
    p = Plain([1, 2])
    q = copy.deepcopy(p)
    return (q, q.v is p.v)


def type_things(a):
    return (type(a) is Number, type(3).__name__, type([]) == list, Plain.__name__, Plain.__mro__[0] is Plain, type(Plain(1)).__qualname__, int.__bases__, a.__class__.__name__, type('X', (), {'k': 1}).k)


def metaclasses(a):
    return (WithMeta(a).made, WithMeta.zz, WithMeta.mp, WithMeta(1))


def container_subclasses(a):
    l = Lst([1, 2])
    l.append(a)
    d = Dct(a=1)
    d['b'] = 2
    l.tag = 't'
    return (l.first(), l, d['zz'], d.b, d, len(l), isinstance(l, list), l[1:])


def getattribute(a):
    g = GetAttribute()
    g.q = a
    r = g.q_
    del g.q
    return (g.magic, r, hasattr(g, 'q_'))


def protocols(a):
    return (New(a), New[3], list(It(3)), [v for v in It(2)], sum(It(4)), dict(zip('ab', It(2))), max(It(3)), 4 in It(5), list(Seq()), [v for v in Seq()], tuple(It(2)), sorted(It(3)), list(map(str, It(2))), list(enumerate(It(1))), ', '.join(map(str, It(3))), *It(2))
