"""The device on which tests put their tensors: what the variable TENON_TEST_DEVICE names."""
from __future__ import annotations

import ctypes
import os
import pathlib
import types

import torch

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ.get("TENON_BUILD", ROOT / "build/release"))


def open_mock() -> None:
    """Makes torch's `privateuseone` the mock device, under the name "mock"."""
    library = ctypes.CDLL(str(BUILD / "tests/torch/mock_torch.so"))
    library.mock_torch_open.restype = ctypes.c_char_p
    wrong = library.mock_torch_open(str(BUILD / "tests/plugins/mock_device.so").encode())
    assert wrong is None, wrong
    torch.utils.rename_privateuse1_backend("mock")
    module = types.ModuleType("torch.mock")
    module.is_available = lambda: True
    module.device_count = lambda: 2
    module.current_device = torch.accelerator.current_device_index
    module._is_in_bad_fork = lambda: False
    module.manual_seed_all = lambda seed: None
    torch._register_device_module("mock", module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=False)


def placed(value, device: str):
    """A copy of arguments with their tensors on the device."""
    if isinstance(value, torch.nn.Module):
        return value.to(device)
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: placed(item, device) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(placed(item, device) for item in value)
    return value
