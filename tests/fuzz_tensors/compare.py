"""A program compiled against plain execution: results and what became of the inputs, for several calls and sizes."""
from __future__ import annotations

import torch
from torch import Tensor

import tenon
from tests.fuzz_tensors.program import Program

TOLERANCES = {torch.bfloat16: 6e-2, torch.float16: 1e-2, torch.float32: 2e-4, torch.float64: 1e-9}
MORE = (0, 0, 1, 2)  # twice the same, then other sizes: the second kind of program takes them as symbols


def other_strides(got: Tensor, want: Tensor) -> str | None:
    """Strides that differ in dimensions of more than one element; the shapes are equal."""
    if want.numel() and any(a != b for a, b, size in zip(got.stride(), want.stride(), want.shape) if size > 1):
        return f"strides {got.stride()} instead of {want.stride()}, shape {list(want.shape)}"
    return None


def difference(got: Tensor, want: Tensor, tolerance: float) -> str | None:
    """What differs: dtype, shape, strides of dimensions of more than one element, values beyond the tolerance (of the largest value)."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if found := other_strides(got, want):
        return found
    if not want.dtype.is_floating_point:
        return None if torch.equal(got, want) else f"{int((got != want).sum())} of {want.numel()} elements"
    a, b = got.double(), want.double()
    scale = max(1.0, b[b.isfinite()].abs().max().item() if b.isfinite().any() else 1.0)
    return None if torch.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True) else f"values, by {(a - b).abs().nan_to_num().max().item():.3g}"


def identities(values: list[Tensor]) -> list[int]:
    """For each the place of the first that is the same object."""
    return [next(i for i, other in enumerate(values) if other is value) for value in values]


def run(program: Program) -> str | None:
    """What differs first; None when nothing does, or when plain execution raises."""
    compiled = tenon.compile(lambda *inputs: program.run(list(inputs)))
    for call, more in enumerate(MORE):
        theirs, ours = program.inputs(more), program.inputs(more)
        try:
            want = program.run(theirs)
        except Exception:
            return None
        got = compiled(*ours)
        tolerance = max((TOLERANCES[x.dtype] for x in (*want, *theirs) if x.dtype in TOLERANCES), default=0.0)
        if not program.keeps_all and tolerance > 1e-3:
            tolerance *= 4  # values of half precision that nobody sees are not rounded to it
        found = [] if identities(ours + got) == identities(theirs + want) else ["values are other objects than in plain execution"]
        found += [f"value {i}: {d}" for i, (a, b) in enumerate(zip(got, want)) if (d := difference(a, b, tolerance))]
        found += [f"input {i}: {d}" for i, (a, b) in enumerate(zip(ours, theirs)) if (d := difference(a, b, tolerance))]
        if found:
            return f"call {call}: {found[0]}"
    return None
