from typing import assert_type

import numpy as np

import tenon

fast = tenon.compile(np.sin, backend=["llvm", "reference"])
fast(np.ones(3))
assert_type(tenon.backends(), list[str])
