from functools import partial
from typing import assert_type

import numpy as np
import numpy.typing as npt

import tenon


def double(a: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return a * 2


whole = partial(tenon.compile, fullgraph=True)
whole(double)(np.ones(2))
later = tenon.compile(disable=True)
assert_type(later(double)(np.ones(2)), npt.NDArray[np.float64])
