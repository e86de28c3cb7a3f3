"""Run inside a fresh environment that has only the wheel and NumPy: the package imports, compiles, and finds its plugins."""
import pathlib
import sys

import numpy as np

import tenon

assert "torch" not in sys.modules
assert pathlib.Path(tenon.__file__).is_relative_to(sys.prefix), tenon.__file__

compiled = tenon.compile(lambda a, b: np.sqrt(a * a + b * b), fullgraph=True)
a, b = np.arange(6.0), np.ones(6)
np.testing.assert_allclose(compiled(a, b), np.hypot(a, b))
assert tenon.stats()["eager_fallbacks"] == 0

names = {"llvm", "reference", "printer"}
assert names <= set(tenon.backends()), tenon.backends()
loaded = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if "libtbb" in line}
assert loaded and all(pathlib.Path(path).is_relative_to(sys.prefix) for path in loaded), f"TBB is not the wheel's own: {loaded}"
print("the wheel works:", ", ".join(sorted(tenon.backends())))
