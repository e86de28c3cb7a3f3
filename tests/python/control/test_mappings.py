"""Mappings behind proxies, and ordered ones across a break."""
from __future__ import annotations

import collections
import types

import numpy as np

import tenon

ONES = np.ones(3)


def test_mappings_behind_proxies(counts):
    kept = {"a": 2.0, "b": 3}
    shown = types.MappingProxyType(kept)

    def run(x):
        own = types.MappingProxyType({"c": 1})
        found = [len(shown), "a" in shown, shown.get("d", 4), list(shown), sorted(shown.items()), own["c"], shown == kept]
        return x * shown["a"] + sum(shown.values()), found, own

    assert counts(run, (ONES,)) <= 2  # list() of it, and the comparison
    kept["a"] = 5.0
    compiled = tenon.compile(run)
    np.testing.assert_equal(compiled(ONES), run(ONES))
    kept["e"] = 1
    np.testing.assert_equal(compiled(ONES), run(ONES))


def test_views_of_ordered_dicts_keep_their_order(counts):
    def run(x):
        ordered = collections.OrderedDict(a=1, b=2, c=3)
        ordered.move_to_end("a")
        view = ordered.items()
        print(end="")
        return x + 1, list(view)

    counts(run, (ONES,))
