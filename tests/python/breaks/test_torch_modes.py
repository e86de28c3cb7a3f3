"""Modes of torch that no graph holds for: what a program does in one runs as it is, what comes after it is compiled again."""
import subprocess
import sys

import pytest
import tenon

torch = pytest.importorskip("torch")
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


class Doubled(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.sin else result


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def under_a_function_mode(x):
    y = x + 1
    with Doubled():
        for _ in range(2):
            y = torch.sum(torch.sin(y), dim=0, keepdim=True)
    return y * 3 + x


def under_a_dispatch_mode(x):
    with Seen() as seen:
        y = x.sin()
    return y + 1, seen.names


def on_another_device(x):
    with torch.device("meta"):
        shape = torch.empty(2, 5).shape
        kind = torch.nn.Linear(in_features=3, out_features=2).weight.device.type
    return x * shape[1] + 1, kind


def with_a_default_device(x):
    torch.set_default_device("cpu")
    y = torch.ones(4)
    torch.set_default_device(None)
    return x * 2 + y


def left_by_an_exception(x):
    try:
        with Doubled():
            torch.sin(x).reshape(7)
    except RuntimeError as error:
        return x * 2 + 1, str(error)


@pytest.mark.parametrize("fn", [under_a_function_mode, under_a_dispatch_mode, on_another_device, with_a_default_device, left_by_an_exception])
def test_what_follows_is_compiled(check, fn):
    check(fn, (torch.randn(4),), (torch.randn(4),), fallbacks=None)
    assert tenon.stats()["graphs"] > 0
    stats = tenon.stats()
    tenon.compile(fn)
    assert stats["left_to_python"] == 0 and torch.utils._device.CURRENT_DEVICE is None


def test_a_long_stay_ends():
    def fn(x):
        with Doubled():
            for _ in range(3000):
                x = x + 1
        return x * 2

    x = torch.zeros(2)
    torch.testing.assert_close(tenon.compile(fn)(x), fn(x))


FIRST_CALL = """
import torch, tenon
from torch.utils._python_dispatch import TorchDispatchMode

class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        names.append(str(func))
        return func(*args, **(kwargs or {}))

names, x = [], torch.ones(5)
with Seen():
    tenon.compile(lambda x: torch.add(x, x))(x)
print(names)
"""


def test_a_mode_of_the_first_call_sees_the_program_alone():
    """What Tenon asks of torch when it first meets it is its own."""
    run = subprocess.run([sys.executable, "-c", FIRST_CALL], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['aten.add.Tensor']"


def test_a_subclass_sees_its_operations_alone():
    """Nothing is read of it before it is known that it is one."""
    names = []

    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Named)
    compiled = tenon.compile(lambda x: x + 1)
    for _ in range(3):
        names.clear()
        compiled(x)
        assert names == ["add"]
