from typing import assert_type

import numpy as np
import numpy.typing as npt

import tenon


def tone(a: npt.NDArray[np.float64], gain: float = 2.0) -> npt.NDArray[np.float64]:
    return np.tanh(a * gain)


fast = tenon.compile(tone)
assert_type(fast(np.ones(3), gain=1.5), npt.NDArray[np.float64])
