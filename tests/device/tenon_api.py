"""libtenon's C API (`tenon/host.h`) by ctypes, as far as compiling a graph's text and running it on a card needs it."""
from __future__ import annotations

import ctypes
import os
import tempfile
from ctypes import POINTER, Structure, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p


class Failure(Structure):
    _fields_ = [("code", c_int32), ("phase", c_int32), ("plugin", c_char_p), ("node", c_uint32), ("text", c_char_p)]


class Graph(Structure):
    _fields_ = [("struct_size", c_size_t), ("data", c_void_p), ("size", c_size_t), ("constants", c_void_p), ("constant_count", c_size_t)]


class CompileRequest(Structure):
    _fields_ = [("struct_size", c_size_t), ("graph", Graph), ("backends", POINTER(c_char_p)), ("backend_count", c_size_t), ("pipeline", c_void_p),
                ("pipeline_count", c_size_t), ("options", c_char_p), ("release_constants", c_void_p), ("context", c_void_p),
                ("own_backends", c_void_p), ("own_backend_count", c_size_t), ("cancelled", c_void_p), ("cancel_context", c_void_p)]


class RunArgs(Structure):
    _fields_ = [("struct_size", c_size_t), ("inputs", POINTER(c_void_p)), ("symbols", POINTER(c_int64)), ("outputs", POINTER(c_void_p)), ("stream", c_void_p),
                ("allocate_output", c_void_p), ("context", c_void_p)]


class Session:
    """A session of the library at `path`. It lives as long as the process."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.library.tenon_last_error.restype = POINTER(Failure)
        self.library.tenon_captured_graph.restype = POINTER(Graph)
        self.handle = c_void_p()
        self.check(self.library.tenon_session_create(None, ctypes.byref(self.handle)))

    def check(self, code: int) -> None:
        """Raises what the library says of a failure."""
        if code:
            raise RuntimeError(f"code {code}: {self.library.tenon_last_error().contents.text.decode()}")

    def compile(self, text: str, options: str = "{}") -> Program:
        """The graph of a text, for the backend `cuda` alone; options as JSON."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.tir")
            with open(path, "w") as file:
                file.write(text)
            captured = c_void_p()
            self.check(self.library.tenon_capture_file(self.handle, path.encode(), None, ctypes.byref(captured)))
        backends = (c_char_p * 1)(b"cuda")
        request = CompileRequest(struct_size=ctypes.sizeof(CompileRequest), graph=self.library.tenon_captured_graph(captured).contents, backends=backends, backend_count=1,
                                 pipeline=ctypes.cast(backends, c_void_p), pipeline_count=0,  # no passes
                                 options=options.encode())
        program = c_void_p()
        self.check(self.library.tenon_compile(self.handle, ctypes.byref(request), ctypes.byref(program)))
        return Program(self, program)


class Program:
    """A compiled graph without symbols and with results of known sizes."""

    def __init__(self, session: Session, handle: c_void_p) -> None:
        self.session, self.handle = session, handle

    def bound(self, inputs: list[int], outputs: list[int], stream: int) -> RunArgs:
        """The arguments of a run over memory at these addresses."""
        self.kept = (c_void_p * len(inputs))(*inputs), (c_void_p * len(outputs))(*outputs), (c_int64 * 1)()
        return RunArgs(struct_size=ctypes.sizeof(RunArgs), inputs=self.kept[0], symbols=self.kept[2], outputs=self.kept[1], stream=stream)

    def run(self, arguments: RunArgs) -> None:
        """Enqueues a run."""
        code = self.session.library.tenon_program_run(self.handle, ctypes.byref(arguments))
        if code:
            self.session.check(code)
