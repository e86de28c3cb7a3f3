from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import tenon


def plain(graph: tenon.Graph, example_inputs: list[Any]) -> Callable[..., Any]:
    assert_type(graph.op_names, list[str])
    assert_type(graph.code(), str)
    return graph.forward


tenon.register_backend("plain", plain)


def wave(a: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.sin(a) + 1


fast = tenon.compile(wave, backend="plain")
fast(np.ones(3))
