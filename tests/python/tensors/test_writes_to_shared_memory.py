"""Writes into tensors whose memory others share: arguments that overlap, copies that share until one is written."""
import pytest

import tenon

torch = pytest.importorskip("torch")


def test_overlapping_arguments(check):
    def fn(x, y):
        x.add_(1)
        return x + y

    compiled = tenon.compile(fn)
    for left, right in ((slice(0, 4), slice(2, 6)), (slice(0, 3), slice(3, 6)), (slice(0, 6, 2), slice(1, 6, 2)), (slice(0, 6), slice(0, 6))):
        base, twin = torch.zeros(6), torch.zeros(6)
        check.same(compiled(base[left], base[right]), fn(twin[left], twin[right]))
        check.same(base, twin)
    x, y = torch.zeros(4), torch.zeros(4)
    check.same(compiled(x, x), fn(y, y))
    check.same(x, y)


def test_arguments_that_begin_to_overlap(check):
    def fn(x, y):
        x.mul_(2)
        z = y + x
        y.sub_(1)
        return z, x - y

    compiled = tenon.compile(fn)
    for _ in range(2):
        check.same(compiled(torch.ones(4), torch.ones(4)), fn(torch.ones(4), torch.ones(4)))
        base, twin = torch.arange(8.0), torch.arange(8.0)
        check.same(compiled(base[:4], base[2:6]), fn(twin[:4], twin[2:6]))
        check.same(base, twin)


def test_many_arguments_of_one_memory(check):
    def fn(a, b, c, d, e):
        a.mul_(2)
        c.add_(b)
        e.sub_(a + d)
        return b * d

    compiled, base = tenon.compile(fn), torch.arange(60.0)
    twin = base.clone()
    apart, overlapping = (30, 0, 12, 50, 20), ((30, 0, 12, 50, 27), (30, 0, 12, 33, 20), (5, 0, 12, 50, 20), (30, 50, 12, 50, 20), (30, 0, 12, 50, 0))
    for places in (apart, apart, *overlapping, apart, apart[::-1], apart):
        check.same(compiled(*(base[p:p + 6] for p in places)), fn(*(twin[p:p + 6] for p in places)))
        check.same(base, twin)
    graphs = tenon.stats()["graphs"]
    compiled(*(base[p:p + 6] for p in apart))
    assert tenon.stats()["graphs"] == graphs


def test_memory_that_is_copied_when_it_is_written():
    def tripled(x):
        return x.mul_(3) + 1

    def of_a_clone(x):
        y = x._lazy_clone()
        y.view(4).mul_(3)
        return y

    compiled = tenon.compile(tripled)
    for lazy in (False, True, False, True):
        x = torch.arange(4.0)
        y = x._lazy_clone() if lazy else x.clone()
        for written in (y, x):
            torch.testing.assert_close(compiled(written), torch.arange(4.0) * 3 + 1)
        assert (x.tolist(), y.tolist()) == ([0, 3, 6, 9], [0, 3, 6, 9])
    x = torch.arange(4.0)
    assert (tenon.compile(of_a_clone)(x).tolist(), x.tolist()) == ([0, 3, 6, 9], [0, 1, 2, 3])
