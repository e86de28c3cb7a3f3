"""Calls the op catalogue through its test library, and eager torch and NumPy by the same names."""
import ctypes
import json
import math
import os
import sys
from pathlib import Path

import numpy as np

try:
    import torch
except ImportError:  # the NumPy half runs without it
    torch = None

DTYPES = {"bool": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
NAMES = {v: k for k, v in DTYPES.items()}


def build_folder() -> Path:
    """$TENON_BUILD, the build tree that the imported package lies in, or build/."""
    if "TENON_BUILD" in os.environ:
        return Path(os.environ["TENON_BUILD"])
    package = sys.modules.get("tenon")
    if package is not None and (Path(package.__file__).parents[2] / "lib").exists():
        return Path(package.__file__).parents[2]
    return Path(__file__).parents[3] / "build"


def load():
    path = build_folder() / "lib" / "libtenon_ops_probe.so"
    if not path.exists():
        return None
    library = ctypes.CDLL(str(path))
    for f in (library.ops_run, library.ops_data):
        f.restype = ctypes.c_void_p
    for f in (library.ops_text, library.ops_catalogue):
        f.restype = ctypes.c_char_p
    library.ops_data.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.ops_text.argtypes = library.ops_free.argtypes = [ctypes.c_void_p]
    return library


LIBRARY = load()


def catalogue():
    return json.loads(LIBRARY.ops_catalogue())


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class _Request:
    def __init__(self):
        self.inputs, self.pointers = [], []

    def tensor(self, dtype, shape, strides, pointer):
        self.inputs.append({"dtype": NAMES[dtype], "shape": list(shape), "strides": list(strides)})
        self.pointers.append(pointer)
        return {"tensor": len(self.inputs) - 1}

    def encode(self, x):
        if torch is not None and isinstance(x, torch.Tensor):
            return self.tensor(str(x.dtype).removeprefix("torch."), x.shape, x.stride(), x.data_ptr())
        if torch is not None and isinstance(x, torch.dtype):
            return {"dtype": NAMES[str(x).removeprefix("torch.")]}
        if isinstance(x, np.ndarray):
            return self.tensor(x.dtype.name, x.shape, [s // x.itemsize for s in x.strides], x.ctypes.data)
        if isinstance(x, np.generic):
            return self.encode(np.asarray(x))
        if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
            return {"dtype": NAMES[np.dtype(x).name]}
        if isinstance(x, slice):
            return {"slice": [x.start, x.stop, x.step]}
        if x is Ellipsis:
            return {"ellipsis": True}
        if isinstance(x, float) and not math.isfinite(x):
            return {"number": "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"}
        if isinstance(x, (list, tuple)):
            return [self.encode(e) for e in x]
        return x


def run(name, args, kwargs, **options):
    """The catalogue's results as NumPy arrays (bfloat16 as float32), with their dtype names and the container."""
    request = _Request()
    is_item = name.endswith("__getitem__") or name.endswith("__setitem__")
    encoded = [request.encode([a] if is_item and i == 1 and isinstance(a, list) else a) for i, a in enumerate(args)]
    keywords = {k: request.encode(v) for k, v in kwargs.items()}
    text = json.dumps({"name": name, "flavour": name.split(".")[0], "args": encoded, "kwargs": keywords, "inputs": request.inputs, **options})
    pointers = (ctypes.c_void_p * max(1, len(request.pointers)))(*request.pointers)
    handle = LIBRARY.ops_run(text.encode(), pointers)
    try:
        answer = json.loads(LIBRARY.ops_text(handle))
        if "error" in answer:
            raise Refused(answer["code"], answer["error"])
        return [_result(handle, i, r) for i, r in enumerate(answer["results"])], answer
    finally:
        LIBRARY.ops_free(handle)


def _result(handle, i, r):
    dtype, shape = DTYPES[r["dtype"]], tuple(r["shape"])
    storage = np.dtype("uint16" if dtype == "bfloat16" else dtype)
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.frombuffer(ctypes.string_at(LIBRARY.ops_data(handle, i), count * storage.itemsize), storage).reshape(shape).copy()
    if dtype == "bfloat16":
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    return dtype, raw


def eager(name, args, kwargs):
    """The library's own results in the same form."""
    target = {"torch": torch, "numpy": np}[name.split(".")[0]]
    parts = name.split(".")[1:]
    for part in parts[:-1]:
        target = getattr(target, part)
    attribute = getattr(target, parts[-1])
    if callable(attribute):
        result = attribute(*args, **kwargs)
    else:
        result = getattr(args[0], parts[-1])
    if name.endswith("__setitem__"):
        result = args[0]
    many = isinstance(result, (list, tuple))
    container = "single" if not many else "list" if isinstance(result, list) else "tuple"
    return [_plain(r) for r in (result if many else [result])], container


def _plain(r):
    if torch is not None and isinstance(r, torch.Tensor):
        dtype = str(r.dtype).removeprefix("torch.")
        return dtype, (r.detach().float() if dtype == "bfloat16" else r.detach()).numpy()
    r = np.asarray(r)
    return r.dtype.name, r


TOLERANCE = {"float16": (3e-3, 3e-4), "bfloat16": (2e-2, 2e-3), "float32": (2e-5, 4e-6), "float64": (1e-9, 1e-10)}


def compare(name, args, kwargs, tolerance=1, **options):
    """Asserts that the catalogue gives what the library gives: dtypes, shapes, container, values."""
    import copy

    got, answer = run(name, copy.deepcopy(args), kwargs, **options)
    want, container = eager(name, copy.deepcopy(args), kwargs)
    assert [(d, a.shape) for d, a in got] == [(d, a.shape) for d, a in want]
    if len(want) > 1 or container != "single":
        assert answer["container"] != "single"
    for (dtype, a), (_, b) in zip(got, want):
        if dtype in TOLERANCE:
            rtol, atol = TOLERANCE[dtype]
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=rtol * tolerance, atol=atol * tolerance)
        else:
            np.testing.assert_array_equal(a, b)
    return answer
