"""A long compile in a notebook is shown as a bar."""
import subprocess
import sys
import textwrap

PROGRAM = """
    import sys, types

    class HTML:
        def __init__(self, data):
            self.data = data

    shown = []

    class Handle:
        def update(self, what):
            shown.append(what.data)

    def display(what, display_id):
        shown.append(what.data)
        return Handle()

    sys.modules["ipykernel"] = types.ModuleType("ipykernel")
    module = types.ModuleType("IPython.display")
    module.HTML, module.display = HTML, display
    sys.modules["IPython"], sys.modules["IPython.display"] = types.ModuleType("IPython"), module

    import time
    import numpy as np
    import tenon
    from tests.python.conftest import of_many_kernels

    # As many kernels as take this machine well over a second.
    for rounds in (100, 400, 1600):
        tenon.compile(of_many_kernels(rounds, rounds))(np.ones(3))
        time.sleep(0.5)
        if shown:
            break
    assert shown and all(text.startswith("<progress value=") and "tenon: compiling" in text for text in shown[:-1]), shown
    assert shown[-1] == "", shown[-1]
"""


def test_a_long_compile_is_a_bar():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, cwd=__file__.rpartition("/tests/")[0], timeout=280)
    assert done.returncode == 0, done.stderr
    assert "compiling" not in done.stderr
