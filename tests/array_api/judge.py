"""Whether a compiled result is NumPy's: same type, dtype, shape and strides, and as close to the exact result as NumPy is."""
from __future__ import annotations

from typing import Any

import numpy as np

FACTOR, ULPS = 2, 4  # the error may be that many times NumPy's, or that many units in the last place of the result's scale


def disagreement(got: Any, want: Any, exact: Any = None) -> str | None:
    """Says where `got` differs from NumPy's `want`; nothing where it agrees. `exact` is the result in more digits, or None."""
    if type(got) is not type(want):
        return f"type {type(got).__name__} instead of {type(want).__name__}"
    if isinstance(want, (list, tuple)):
        return _sequence(got, want, exact)
    if isinstance(want, (np.ndarray, np.generic)):
        return _array(got, want, exact)
    if got != want and not (got != got and want != want):
        return f"{got} instead of {want}"
    return None


def with_zeros_like(got: Any, want: Any, sorted_from: np.ndarray, axis: int) -> Any:
    """`got` with the signs of `want`'s zeros, where each lane along `axis` holds as many zeros of either sign as the array that was sorted:
    zeros are equal, so a sort that is not stable may leave them in any order, and NumPy's vectorised one writes one sign for both."""
    if not isinstance(got, np.ndarray) or got.dtype.kind != "f" or not got.dtype == want.dtype or not got.shape == want.shape == sorted_from.shape:
        return got
    held, kept = (((x == 0) & np.signbit(x)).sum(axis=axis, keepdims=True) for x in (sorted_from, got))
    zeros = (got == 0) & (want == 0) & (held == kept)
    placed = got.copy(order="K")
    placed[zeros] = want[zeros]
    return placed


def _sequence(got: Any, want: Any, exact: Any) -> str | None:
    if len(got) != len(want):
        return f"{len(got)} items instead of {len(want)}"
    references = exact if isinstance(exact, (list, tuple)) and len(exact) == len(want) else [None] * len(want)
    for i, (one, other, reference) in enumerate(zip(got, want, references)):
        if what := disagreement(one, other, reference):
            return f"[{i}] {what}"
    return None


def _array(got: Any, want: Any, exact: Any) -> str | None:
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.size and any(n > 1 and a != b for n, a, b in zip(want.shape, got.strides, want.strides)):
        return f"strides {got.strides} instead of {want.strides}"
    if want.dtype.kind not in "fc":
        return None if np.array_equal(got, want) else _first(got, want, got != want)
    if want.dtype.kind == "c":
        wider = np.asarray(exact) if exact is not None and np.iscomplexobj(exact) else None
        parts = [None, None] if wider is None else [wider.real, wider.imag]
        return _values(got.real, want.real, parts[0]) or _values(got.imag, want.imag, parts[1])
    return _values(got, want, exact)


def _values(got: Any, want: Any, exact: Any) -> str | None:
    special = ~np.isfinite(want) | ~np.isfinite(got)
    unlike = special & ~((got == want) | (np.isnan(got) & np.isnan(want)))
    if np.any(unlike):
        return _first(got, want, unlike)
    signs = (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
    if np.any(signs):
        return _first(got, want, signs)
    return _errors(np.asarray(got)[~special], np.asarray(want)[~special], exact, special)


def _errors(got: np.ndarray, want: np.ndarray, exact: Any, special: Any) -> str | None:
    if np.array_equal(got, want):
        return None
    exact = np.asarray(exact)[~special] if isinstance(exact, (np.ndarray, np.generic)) and np.shape(exact) == np.shape(special) else want
    info = np.finfo(want.dtype)
    exact = np.clip(exact.astype(np.longdouble), info.min, info.max)
    ulp = info.eps * np.abs(want).max().astype(np.longdouble) + info.smallest_normal
    ours, numpys = (np.abs(x - exact).max() for x in (got, want))
    if ours <= max(FACTOR * numpys, ULPS * ulp):
        return None
    return f"error {ours:.3g}, NumPy's {numpys:.3g}, allowed {max(FACTOR * numpys, ULPS * ulp):.3g}"


def _first(got: Any, want: Any, where: Any) -> str:
    place = tuple(int(i) for i in np.argwhere(where)[0])
    return f"{got[place]!r} instead of {want[place]!r} at {list(place)}"
