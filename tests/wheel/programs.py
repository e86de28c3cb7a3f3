"""Run where a wheel is installed: the demo's programs, compiled, give what they give eagerly, each as one graph.

PyTorch's program (a network, trained by compiled steps and then asked) runs where there is PyTorch.
"""
import importlib.util
import pathlib
import platform
import sys

import numpy as np

import tenon

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from demo import other, photo  # noqa: E402


def compare(name, program, argument, tolerance):
    tenon.reset()
    compiled = tenon.compile(program)
    for _ in range(3):
        np.testing.assert_allclose(compiled(argument), program(argument), rtol=tolerance, atol=tolerance)
    stats = tenon.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"]) == (1, 0, 0), stats
    print(f"{name}: one graph, {stats['backends']['llvm']['nodes']} nodes on llvm")


def digits_network():
    import copy

    import torch
    from demo import digits

    torch.manual_seed(0)
    plain = digits.Digits()
    twin, x, y = copy.deepcopy(plain), torch.rand(256, 64) * 16, torch.randint(0, 10, (256,))
    tenon.reset()
    eager, compiled = digits.stepper(plain), tenon.compile(digits.stepper(twin))
    for _ in range(30):
        torch.testing.assert_close(compiled(x, y), eager(x, y), rtol=1e-3, atol=1e-3)
    assert tenon.stats()["graph_breaks"] == 0 and tenon.stats()["eager_fallbacks"] == 0, tenon.stats()
    with torch.no_grad():
        torch.testing.assert_close(tenon.compile(twin)(x), twin(x))
    print(f"digits network: trained and asked, torch {torch.__version__}")


picture = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)
compare("photo.develop", photo.develop, picture, 1e-5)
compare(other.NAME, other.pipeline, picture / 255, 1e-12)
if importlib.util.find_spec("torch"):
    digits_network()
else:
    print("no PyTorch here: the digits network was not run")
print(f"Python {sys.version.split()[0]}, {platform.freedesktop_os_release()['PRETTY_NAME']}: the wheel works")
