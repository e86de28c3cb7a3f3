"""What Tenon says unasked goes through logging, and neither raises in the program nor is recorded by it."""
import logging
import os
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

import tenon


def reach_the_limit():
    compiled = tenon.compile(lambda a: a * 2, dynamic=False, options={"recompile_limit": 1})
    for size in range(2, 8):
        compiled(np.ones(size))


def test_a_message_is_a_record_of_logging_once_a_place(caplog):
    reach_the_limit()
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("tenon.compile", logging.WARNING) and "recompile limit of 1 reached" in record.message


def test_warnings_are_errors_and_recorded(caplog):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        reach_the_limit()
    assert seen == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reach_the_limit()
    assert len(caplog.records) == 2


class Failing(logging.Handler):
    def emit(self, record):
        raise ValueError("a handler of the program")


def test_a_handler_that_raises_does_not_reach_the_call(capfd):
    handler = Failing()
    logging.getLogger("tenon").addHandler(handler)
    try:
        reach_the_limit()
    finally:
        logging.getLogger("tenon").removeHandler(handler)
    assert "recompile limit of 1 reached" in capfd.readouterr().err


@pytest.mark.parametrize("silenced", [False, True])
def test_without_handlers_it_is_on_stderr(silenced):
    program = textwrap.dedent(f"""
        import logging, numpy as np, tenon
        if {silenced}:
            logging.getLogger("tenon").setLevel(logging.ERROR)
        compiled = tenon.compile(lambda a: a * 2, dynamic=False, options={{"recompile_limit": 1}})
        for size in range(2, 8):
            compiled(np.ones(size))
    """)
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.count("recompile limit of 1 reached") == (0 if silenced else 1)


def stderr_of(program, flags=(), **variables):
    """Of a process of its own, since libtenon says a thing once."""
    done = subprocess.run([sys.executable, *flags, "-c", textwrap.dedent(program)], capture_output=True, text=True, env={**os.environ, **variables}, check=True)
    return done.stderr


MISSPELT = {"TENON_THREDS": "2"}


def test_what_libtenon_says_is_a_record_of_logging():
    stderr = stderr_of("""
        import logging, warnings, numpy as np, tenon
        records = []
        class Kept(logging.Handler):
            def emit(self, record):
                records.append((record.name, record.levelname, record.getMessage()))
        logging.getLogger("tenon").addHandler(Kept())
        logging.getLogger("tenon").propagate = False
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            tenon.compile(np.sin)(np.ones(3))
        (record,) = records
        assert record[:2] == ("tenon.plugins", "WARNING") and "TENON_THREDS" in record[2], records
        assert not seen, seen
    """, ("-W", "error"), **MISSPELT)
    assert "TENON_THREDS" not in stderr, stderr


def test_what_libtenon_says_is_on_stderr_without_handlers():
    stderr = stderr_of("import numpy as np, tenon; [tenon.compile(np.sin)(np.ones(3)) for _ in range(2)]", ("-W", "error"), **MISSPELT)
    assert stderr.count("TENON_THREDS") == 1 and stderr.startswith("tenon: "), stderr


def test_what_is_said_without_the_lock_waits_for_the_next_call():
    stderr_of("""
        import ctypes, logging, pathlib, threading, numpy as np, tenon
        records = []
        class Kept(logging.Handler):
            def emit(self, record):
                records.append((record.getMessage(), threading.current_thread().name))
        logging.getLogger("tenon").addHandler(Kept())
        logging.getLogger("tenon").propagate = False
        compiled = tenon.compile(np.sin)
        compiled(np.ones(3))
        assert len(records) == 1, records
        (path,) = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if line.endswith("/libtenon.so")}
        session, libtenon = ctypes.c_void_p(), ctypes.CDLL(path)  # which gives the lock away
        other = threading.Thread(target=lambda: libtenon.tenon_session_create(None, ctypes.byref(session)), name="other")
        other.start()
        other.join()
        assert session.value and len(records) == 1, records
        for _ in range(2):
            compiled(np.ones(3))
        assert [name for _, name in records] == ["MainThread"] * 2 and "TENON_THREDS" in records[1][0], records
    """, ("-W", "error"), **MISSPELT)


def test_a_handler_may_call_compiled_functions():
    stderr = stderr_of("""
        import logging, numpy as np, tenon
        compiled = tenon.compile(lambda a: a + 1)
        class Calling(logging.Handler):
            def emit(self, record):
                print(compiled(np.ones(2)).sum())
        logging.getLogger("tenon").addHandler(Calling())
        assert compiled(np.ones(3)).sum() == 6
    """, **MISSPELT)
    assert "Traceback" not in stderr, stderr


def test_a_backend_without_numpy_is_told_once(caplog):
    torch = pytest.importorskip("torch")

    def of_torch_alone(graph, example_inputs):
        if any("numpy" in str(node.target) for node in graph.to_fx().graph.nodes):
            raise TypeError("no NumPy here")
        return graph.forward

    def both(x):
        return torch.from_numpy(np.sin((x + 1).numpy())) * 2

    for _ in range(2):
        compiled = tenon.compile(both, backend=of_torch_alone)
        torch.testing.assert_close(compiled(torch.ones(3)), both(torch.ones(3)))
    (record,) = caplog.records
    assert record.name == "tenon.fallbacks" and "'of_torch_alone' does not take graphs that call NumPy" in record.message and "no NumPy here" in record.message
