"""Random modules against eager: results, state after the call, and float64 as the judge of the error."""
from __future__ import annotations

import copy
import importlib.util
import pathlib
import sys

import pytest

import tenon

torch = pytest.importorskip("torch")
_spec = importlib.util.spec_from_file_location("model_writer", pathlib.Path(__file__).with_name("model_writer.py"))
model_writer = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = model_writer
_spec.loader.exec_module(model_writer)


def build(source: str) -> torch.nn.Module:
    namespace: dict = {}
    exec(compile(source, "<random model>", "exec"), namespace)
    torch.manual_seed(0)
    return namespace["Model"]()


def leaves(result):
    return result if isinstance(result, tuple) else (result,)


def error(got, exact) -> float:
    if got.numel() == 0:
        return 0.0
    difference = (got.double() - exact.double()).abs()
    return float(torch.nan_to_num(difference, nan=0.0).max())


def check(model, compiled, exact_model, x) -> None:
    """One call of each, on inputs of their own."""
    given = x.clone()
    want = leaves(model(x.clone()))
    got = leaves(compiled(given))
    exact = leaves(exact_model(x.double()))
    assert torch.equal(given, x)
    assert len(got) == len(want)
    for one, other, judge in zip(got, want, exact):
        assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
        assert torch.equal(one.isnan(), other.isnan())
        scale = float(torch.nan_to_num(judge, posinf=0, neginf=0).abs().max()) if judge.numel() else 0.0
        assert error(one, judge) <= 4 * error(other, judge) + 1e-5 * max(scale, 1)


@pytest.mark.parametrize("seed", range(60))
def test_random_model(seed):
    written = model_writer.write_model(seed)
    model = build(written.source).eval()
    twin, exact = copy.deepcopy(model), copy.deepcopy(model).double()
    compiled = tenon.compile(twin)
    shapes = [written.input_shape, written.input_shape, (written.input_shape[0] + 3, *written.input_shape[1:])]
    with torch.no_grad():
        for number, shape in enumerate(shapes):
            x = torch.randn(shape, generator=torch.Generator().manual_seed(number))
            try:
                check(model, compiled, exact, x)
            except BaseException:
                print(f"seed {seed}\n{written.source}")
                raise
    assert twin.calls == model.calls
