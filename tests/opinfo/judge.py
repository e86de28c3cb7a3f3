"""Whether a compiled result is eager's: same structure, dtypes and strides, and as close to float64's result as eager is."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

FACTOR, ULPS = 2, 4  # the error may be that many times eager's, or that many units in the last place of the result's scale


def disagreement(got: Any, want: Any, exact: Any) -> str | None:
    """Says where `got` differs from eager's `want`; nothing where it agrees. `exact` is the result in float64, or None."""
    if isinstance(want, torch.Tensor):
        return _tensor(got, want, exact if isinstance(exact, torch.Tensor) else None)
    if isinstance(want, (list, tuple)):
        return _sequence(got, want, exact)
    if type(got) is not type(want):
        return f"type {type(got).__name__} instead of {type(want).__name__}"
    if got != want and not (got != got and want != want):
        return f"{got} instead of {want}"
    return None


def _sequence(got: Any, want: Sequence, exact: Any) -> str | None:
    if type(got) is not type(want) or len(got) != len(want):
        return f"{type(got).__name__} of {len(got) if hasattr(got, '__len__') else '?'} instead of {type(want).__name__} of {len(want)}"
    references = exact if isinstance(exact, (list, tuple)) and len(exact) == len(want) else [None] * len(want)
    for i, (one, other, reference) in enumerate(zip(got, want, references)):
        if what := disagreement(one, other, reference):
            return f"[{i}] {what}"
    return None


def _tensor(got: Any, want: torch.Tensor, exact: torch.Tensor | None) -> str | None:
    if not isinstance(got, torch.Tensor):
        return f"{type(got).__name__} instead of a tensor"
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if got.layout != want.layout:
        return f"{got.layout} instead of {want.layout}"
    if want.layout != torch.strided:
        return _tensor(got.to_dense(), want.to_dense(), None)
    if want.numel() and any(n != 1 and a != b for n, a, b in zip(want.shape, got.stride(), want.stride())):
        return f"strides {got.stride()} instead of {want.stride()}"
    if want.is_complex():
        reference = torch.view_as_real(exact.resolve_conj()) if exact is not None and exact.is_complex() else None
        return _values(torch.view_as_real(got.resolve_conj()), torch.view_as_real(want.resolve_conj()), reference)
    return _values(got, want, exact)


def _values(got: torch.Tensor, want: torch.Tensor, exact: torch.Tensor | None) -> str | None:
    if not want.is_floating_point():
        return None if torch.equal(got, want) else _first(got, want, got != want)
    special = ~torch.isfinite(want) | ~torch.isfinite(got)
    unlike = special & ~((got == want) | (got.isnan() & want.isnan()))
    if unlike.any():
        return _first(got, want, unlike)
    signs = (got == 0) & (want == 0) & (got.signbit() != want.signbit())
    if signs.any():
        return _first(got, want, signs)
    if torch.equal(got.nan_to_num(), want.nan_to_num()):
        return None
    return _errors(got, want, exact, special)


def _errors(got: torch.Tensor, want: torch.Tensor, exact: torch.Tensor | None, special: torch.Tensor) -> str | None:
    if exact is None or exact.shape != want.shape or not exact.is_floating_point():
        exact = want.double()
    exact = exact.detach().double()
    counted = ~special & torch.isfinite(exact)
    if not counted.any():
        return None
    scale = want.double()[counted].abs().max()
    ulp = torch.finfo(want.dtype).eps * scale + torch.finfo(want.dtype).smallest_normal
    ours, eagers = ((x.double() - exact)[counted].abs() for x in (got, want))
    allowed = max(FACTOR * eagers.max().item(), ULPS * ulp.item())
    if ours.max().item() <= allowed:
        return None
    return f"error {ours.max().item():.3g}, eager's {eagers.max().item():.3g}, allowed {allowed:.3g} (scale {scale.item():.3g})"


def _first(got: torch.Tensor, want: torch.Tensor, where: torch.Tensor) -> str:
    place = tuple(where.nonzero()[0].tolist())
    return f"{got[place].item()} instead of {want[place].item()} at {list(place)}"
