"""A compiled function whose guards have held a few times: they are then compared in other ways."""
import tenon


def settled(fn, *args, calms=3):
    compiled = tenon.compile(fn)
    for _ in range(calms):
        compiled(*args)
    assert tenon.stats()["eager_fallbacks"] == 0 and tenon.stats()["recompiles"] == 0
    return compiled
