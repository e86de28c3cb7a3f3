"""The samples of each family of functions: from a dtype to calls."""
from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.array_api import arranging, elementwise, matrices
from tests.array_api.sample import Sample

FAMILIES: dict[str, Callable[[str], Iterator[Sample]]] = {**elementwise.FAMILIES, **arranging.FAMILIES, **matrices.FAMILIES}
