"""Captures, kept or broken, leave nothing behind."""
import gc
import sys

from harness import Captured, Break, Number, probe


class Box:
    def __init__(self, k):
        self.k = k


SHARED = [1, 2, 3]


def program(a, box, items):
    def gen(n):
        for i in range(n):
            yield a * i

    made = [Box(v) for v in gen(3)]
    try:
        raise KeyError(box.k)
    except KeyError as e:
        text = str(e)
    return made, {"sum": sum(v for v in items), "text": text}, SHARED, lambda v: v + a


def broken(a, box, items):
    kept = [gen for gen in (i for i in items)]
    if a > box.k:
        return kept
    return a


def settled(body, times=30):
    """How many more objects and references there are after many runs than after a few."""

    def measure():
        probe.reset()
        gc.collect()
        return len(gc.get_objects()), [sys.getrefcount(o) for o in watched]

    watched = (program, broken, program.__code__, SHARED, Box, Number, None.__class__)
    for _ in range(3):
        body()
    objects, references = measure()
    for _ in range(times):
        body()
    later, now = measure()
    return later - objects, [a - b for a, b in zip(now, references)]


def test_captures_that_succeed():
    box, items, a = Box(2), [1, 2], Number(1.0)

    def body():
        captured = Captured(program, (a, box, items))
        for _ in range(3):
            captured(a, box, items)
            assert not captured.check((a, box, [1]))

    objects, references = settled(body)
    assert objects <= 3 and not any(references), (objects, references)
    assert sys.getrefcount(a) < 10 and sys.getrefcount(box) < 10 and sys.getrefcount(items) < 10


def test_captures_that_break():
    box, items, a = Box(2), [1, 2], Number(1.0)

    def body():
        try:
            Captured(broken, (a, box, items))
        except Break:
            pass

    objects, references = settled(body)
    assert objects <= 3 and not any(references), (objects, references)
    assert sys.getrefcount(a) < 10 and sys.getrefcount(box) < 10


def test_resident_memory_is_flat():
    import resource

    def body():
        for _ in range(300):
            Captured(program, (Number(1.0), Box(2), [1, 2]))
        probe.reset()

    peaks = []
    for _ in range(4):
        body()
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    # A leak shows in every round, the allocator's next arena or huge page in one.
    assert min(after - before for before, after in zip(peaks, peaks[1:])) < 1024  # KiB
