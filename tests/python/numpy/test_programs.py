"""Programs of NumPy's users (tests/bench/numpy_programs), small: what is compiled gives what NumPy gives."""
import numpy as np
import pytest
from tests.bench.numpy_programs import all_programs

import tenon

PROGRAMS = all_programs().values()


def as_arrays(result):
    return [np.asarray(one) for one in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.area}-{program.name}")
def test_compiled_programs_give_what_numpy_gives(program):
    arguments = program.make(program.small)
    before = [argument.copy() for argument in arguments]
    compiled = tenon.compile(program.fn)
    want = program.fn(*arguments)
    for _ in range(2):
        got = compiled(*arguments)
        assert [type(one) for one in (got if isinstance(got, tuple) else (got,))] == [type(one) for one in (want if isinstance(want, tuple) else (want,))]
        for mine, judge in zip(as_arrays(got), as_arrays(want), strict=True):
            assert mine.dtype == judge.dtype
            if judge.dtype.kind == "f":
                np.testing.assert_allclose(mine, judge, rtol=1e-11, atol=1e-11 * np.abs(judge).max(), strict=True)
            else:
                np.testing.assert_array_equal(mine, judge, strict=True)
    for argument, own in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(argument, own)
