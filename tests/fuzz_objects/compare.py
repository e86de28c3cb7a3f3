"""Makes cases, runs each twice in both ways, and compares."""
from __future__ import annotations

import collections.abc
import contextlib
import io
import itertools
import random
import re
import sys
import tempfile
import warnings
from typing import Any

import numpy as np

import tenon
from tests.fuzz_objects import objects

# What depends on addresses, on the moment, on more than the case, or goes on for ever.
_LEFT_OUT = {"__hash__", "__sizeof__", "__reduce__", "__reduce_ex__", "__init_subclass__", "__subclasshook__", "__new__", "__class__", "__dir__", "__del__", "now", "today", "utcnow", "getrandbits", "data_ptr", "cuda", "xpu", "ipu", "hpu", "mtia",
             "share_memory_", "pin_memory", "is_shared", "is_pinned", "_cdata", "_weak_ref", "ctypes", "tofile", "dump", "fileno", "seed", "urandom", "backward", "register_hook", "__setstate__", "__getstate__", "empty", "new_empty", "empty_like", "new", "resize_",
             "resize", "resize_as_", "set_", "__repr__", "__str__", "__format__", "clear_cache", "rename", "_share_filename_cpu_", "_share_fd_cpu_", "from_file", "from_buffer", "_new_shared", "_set_from_file", "_write_file", "_new_with_file", "_new_using_filename_cpu", "_new_using_fd_cpu",
             "_new_shared_filename_cpu", "_new_shared_fd_cpu", "_free_weak_ref", "_expired", "_set_cdata", "_weak_ref", "_shared_decref", "_shared_incref", "__array_interface__", "__array_struct__", "__dlpack__", "_fix_weakref", "_view_func", "_view_func_unsafe", "_rev_view_func_unsafe",
             "_typed_storage", "untyped_storage", "storage", "_use_count", "_make_subclass", "_make_wrapper_subclass", "_make_dtensor", "data", "grad_fn", "exponential_", "random_", "uniform_", "normal_", "geometric_", "cauchy_", "log_normal_", "bernoulli_", "bernoulli", "multinomial"}


def _methods(value: Any) -> list[str]:
    return sorted(name for name in dir(type(value)) if name not in _LEFT_OUT and callable(getattr(type(value), name, None)))


def _case(draw: random.Random, chosen: str | None) -> tuple[str, str, list[str]]:
    """The expression of an object, one that uses it as `o` and arguments as `a`, `b`, and the expressions of these."""
    torch = "torch" in sys.modules
    made = chosen or draw.choice(objects.OBJECTS * 2 + objects.ARRAYS + (objects.TENSORS if torch else []))
    arguments = [draw.choice(objects.ARGUMENTS * 3 + (objects.TENSOR_ARGUMENTS if torch else [])) for _ in range(2)]
    names = _methods(_make(made))
    if not names or draw.random() < 0.4:
        return made, draw.choice(objects.FORMS).format("a", "b"), arguments
    name, count = draw.choice(names), draw.choice([0, 0, 1, 1, 2])
    given = ", ".join("ab"[:count])
    unbound = f"type(o).{name}({', '.join(['o', *'ab'[:count]])})"
    return made, draw.choice([f"o.{name}({given})"] * 3 + [unbound]), arguments


def _space() -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "fuzzed"}
    exec(objects.PRELUDE, space)
    exec("def del_(o, k):\n    del o[k]\ndef set_(o, k, v):\n    o[k] = v\n", space)
    return space


def _make(expression: str) -> Any:
    return eval(expression, _space())


def _function(made: str, use: str, inside: bool) -> str:
    return f"def fn(a, b):\n    o = {made}\n    return {use}\n" if inside else f"def fn(o, a, b):\n    return {use}\n"


def _normal(value: Any, depth: int = 0) -> Any:
    torch = sys.modules.get("torch")
    if depth > 4:
        return type(value).__name__
    if torch and isinstance(value, torch.Tensor):
        with contextlib.suppress(Exception):
            return "tensor", str(value.dtype), tuple(value.shape), _normal(value.to_dense().tolist(), depth + 1)
        return "tensor", type(value).__name__
    if isinstance(value, np.ndarray):
        return type(value).__name__, str(value.dtype), value.shape, _normal(value.tolist(), depth + 1)
    if isinstance(value, BaseException):
        # Of a wrong number of arguments C code says which class it was called through: that of the object, or the one that has the method.
        return "raised", type(value).__name__, re.sub(r"^\w+\.(?=\w+\(\) takes)", "", _without_addresses(_shown(value)))
    if isinstance(value, dict):
        return type(value).__name__, [(_normal(k, depth + 1), _normal(v, depth + 1)) for k, v in list(value.items())[:30]]
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value).__name__, [_normal(item, depth + 1) for item in itertools.islice(value, 30)]
    if isinstance(value, collections.abc.Iterator) and not isinstance(value, io.IOBase):
        with contextlib.suppress(Exception):
            return type(value).__name__, [_normal(item, depth + 1) for item in itertools.islice(value, 20)]
        return type(value).__name__
    if isinstance(value, (float, complex)):
        return type(value).__name__, format(value, ".12g")  # the last bits of NumPy's functions are those of its own code for this processor
    return type(value).__name__, _without_addresses(_shown(value, repr))


def _without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-fA-F]+", "0x", text)[:300]


def _shown(value: Any, as_text: Any = str) -> str:
    try:
        return as_text(value)
    except Exception as error:  # noqa: BLE001  compared
        return f"{type(error).__name__} from {as_text.__name__}"


def _outcomes(made: str, use: str, arguments: list[str], inside: bool, compile_: Any) -> list[Any]:
    space = _space()
    exec(_function(made, use, inside), space)
    fn = compile_(space["fn"])
    seen = []
    for _ in range(2):
        try:
            given = [eval(each, space) for each in ([] if inside else [made]) + arguments]
        except Exception as error:  # noqa: BLE001
            return [("cannot be made", repr(error))]
        try:
            result = fn(*given)
        except Exception as error:  # noqa: BLE001  compared
            result = error
        seen.append((_normal(result), [_normal(each) for each in given]))
    return seen


def run(seed: int, count: int, chosen: str | None = None, show: bool = False) -> list[str]:
    """The cases in which the two ways differ, as text. Files that cases write are gone afterwards."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return _differences(random.Random(seed), count, chosen, show)


def _differences(draw: random.Random, count: int, chosen: str | None, show: bool) -> list[str]:
    differences = []
    for number in range(count):
        made, use, arguments = _case(draw, chosen)
        inside = draw.random() < 0.4
        label = f"case {number}: o = {made}; a = {arguments[0]}; b = {arguments[1]}; {use}{' (made inside)' if inside else ''}"
        if show:
            print(label, flush=True)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            want = _outcomes(made, use, arguments, inside, lambda fn: fn)
            try:
                got = _outcomes(made, use, arguments, inside, tenon.compile)
            except Exception as error:  # noqa: BLE001  an error of ours
                got = [("failed", repr(error))]
        if got != want:
            differences.append(f"{label}\n    compiled: {got}\n    plain:    {want}")
        if number % 200 == 199:
            tenon.reset()
    return differences
