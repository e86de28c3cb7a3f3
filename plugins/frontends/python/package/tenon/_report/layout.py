"""Where the nodes of a graph are drawn: in layers, each below what it reads."""
from __future__ import annotations

from collections.abc import Sequence

SWEEPS = 4


def layers(reads: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each node: below all that it reads, and as near above its first reader as that lets it. `reads` has smaller numbers only."""
    layer = [0] * len(reads)
    for node, read in enumerate(reads):
        layer[node] = 1 + max((layer[other] for other in read), default=-1)
    first = dict[int, int]()
    for node in reversed(range(len(reads))):
        layer[node] = first.get(node, layer[node] + 1) - 1
        for other in reads[node]:
            first[other] = min(first.get(other, layer[node]), layer[node])
    return layer


def positions(reads: Sequence[Sequence[int]]) -> list[tuple[float, int]]:
    """(x, layer) of each node, x in widths of a node with 0 in the middle: the nodes of a layer stand in the order of the means of their neighbours."""
    layer = layers(reads)
    rows = list[list[int]]([] for _ in range(max(layer, default=-1) + 1))
    for node in range(len(reads)):
        rows[layer[node]].append(node)
    readers = list[list[int]]([] for _ in reads)
    for node, read in enumerate(reads):
        for other in read:
            readers[other].append(node)
    x = [0.0] * len(reads)
    for row in rows:
        _place(row, x)
    for sweep in range(SWEEPS):
        near = reads if sweep % 2 == 0 else readers
        for row in rows if sweep % 2 == 0 else reversed(rows):
            row.sort(key=lambda node: sum(x[other] for other in near[node]) / len(near[node]) if near[node] else x[node])
            _place(row, x)
    return [(x[node], layer[node]) for node in range(len(reads))]


def _place(row: Sequence[int], x: list[float]) -> None:
    for place, node in enumerate(row):
        x[node] = place - (len(row) - 1) / 2
