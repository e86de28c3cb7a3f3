"""What Tenon says unasked goes through logging, and neither raises in the program nor is recorded by it."""
import logging
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
