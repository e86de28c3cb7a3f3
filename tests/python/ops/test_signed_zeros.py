"""Which zero comes out where zeros of both signs are equal: as eager's vector instructions have it."""
import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")

PAIRS = np.tile(np.array([[0.0, -0.0], [-0.0, 0.0]]), 32)  # longer than a vector

TORCH = {
    "maximum": torch.maximum, "minimum": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin,
    "clamp by tensors": lambda x, y: torch.clamp(torch.clamp(x, min=y), max=y), "clamp by a number": lambda x, y: torch.clamp(x, min=0.0), "relu": lambda x, y: torch.relu(x),
    "tanh": lambda x, y: torch.tanh(x), "tanhshrink": lambda x, y: torch.nn.functional.tanhshrink(x), "softshrink": lambda x, y: torch.nn.functional.softshrink(x - 0.25),
    "max_pool": lambda x, y: torch.nn.functional.max_pool1d(torch.stack([x, y], -1).reshape(1, 1, -1), 2),
}
NUMPY = {"fmax": np.fmax, "fmin": np.fmin, "tanh": lambda x, y: np.tanh(x), "maximum": np.maximum, "minimum": np.minimum, "clip": lambda x, y: np.clip(x, y, 5), "max of two": lambda x, y: np.stack([x[:2], y[:2]]).max(axis=0)}


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch(name, dtype):
    x, y = (torch.from_numpy(row.copy()).to(dtype) for row in PAIRS)
    torch.testing.assert_close(torch.signbit(tenon.compile(TORCH[name])(x, y)), torch.signbit(TORCH[name](x, y)))


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numpy(name, dtype):
    x, y = PAIRS.astype(dtype)
    np.testing.assert_array_equal(np.signbit(tenon.compile(NUMPY[name])(x, y)), np.signbit(NUMPY[name](x, y)))
