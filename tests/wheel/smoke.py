"""Run where there are only the wheel and NumPy: the package imports, compiles, and finds its plugins and libraries."""
import os
import pathlib
import sys

import numpy as np

import tenon

assert "torch" not in sys.modules
site = pathlib.Path(os.path.realpath(np.__file__)).parents[1]
assert pathlib.Path(os.path.realpath(tenon.__file__)).is_relative_to(site), tenon.__file__

compiled = tenon.compile(lambda a, b: np.sqrt(a * a + b * b), fullgraph=True)
a, b = np.arange(6.0), np.ones(6)
np.testing.assert_allclose(compiled(a, b), np.hypot(a, b))
assert tenon.stats()["eager_fallbacks"] == 0

names = {"llvm", "reference", "printer"}
assert names <= set(tenon.backends()), tenon.backends()
loaded = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if "libtbb" in line or "libzstd" in line}
assert len(loaded) == 2 and all(pathlib.Path(path).is_relative_to(site) for path in loaded), f"TBB and zstd are not the wheel's own: {loaded}"
assert "loaded" in tenon.doctor()["plugins"]["llvm"], tenon.doctor()
print("the wheel works:", ", ".join(sorted(tenon.backends())))
