"""Gradients of graphs in text form, computed by Tenon's reference: the library that tests/opinfo/gradients.cpp is."""
from __future__ import annotations

import ctypes
import functools
import os
import pathlib

import torch

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


class Refused(Exception):
    """The graph has no gradient, and says why."""


class Incomplete(Exception):
    """The graph's text is not all of it: the bytes of constants are left out."""


class _Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64))]


@functools.cache
def _library() -> ctypes.CDLL:
    build = pathlib.Path(os.environ.get("TENON_BUILD", pathlib.Path(__file__).parents[2] / "build/release"))
    library = ctypes.CDLL(str(build / "tests/libopinfo_gradients.so"))
    library.gradients_make.restype = ctypes.c_void_p
    library.gradients_make.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    library.gradients_run.restype = ctypes.c_bool
    library.gradients_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Array), ctypes.c_size_t, ctypes.POINTER(_Array), ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    library.gradients_free.argtypes = [ctypes.c_void_p]
    return library


class Gradients:
    """The gradients of the one result of a graph for all its float inputs, or those of the gradients.

    Inputs are the graph's, then the gradient of the result; of the second order also one for each gradient.
    """

    def __init__(self, text: str, order: int) -> None:
        message = ctypes.create_string_buffer(4000)
        self._graph = _library().gradients_make(text.encode(), order, message, len(message))
        if not self._graph:
            said = message.value.decode()
            raise Refused(said.removeprefix("unsupported: ")) if said.startswith("unsupported: ") else RuntimeError(said)

    def __del__(self) -> None:
        if self._graph:
            _library().gradients_free(self._graph)

    def run(self, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> None:
        """Writes the gradients into tensors of their types; all tensors are row-major."""
        message = ctypes.create_string_buffer(4000)
        if not _library().gradients_run(self._graph, _arrays(inputs), len(inputs), _arrays(outputs), len(outputs), message, len(message)):
            said = message.value.decode()
            raise Incomplete(said) if said.startswith("the bytes of constant") else RuntimeError(said)


def _arrays(tensors: list[torch.Tensor]) -> ctypes.Array:
    return (_Array * len(tensors))(*(_Array(t.data_ptr(), DTYPES.index(t.dtype), t.dim(), (ctypes.c_int64 * max(1, t.dim()))(*t.shape)) for t in tensors))
