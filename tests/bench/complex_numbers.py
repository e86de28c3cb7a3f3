"""``python -m tests.bench.complex_numbers [--seconds S] [--threads N] [--only WORD]``: programs of complex numbers, compiled and plain, in turns.

Twelve programs of PyTorch, of complex64 and complex128, of 4 Ki, 256 Ki and 4 Mi elements; the least time of calls that are made in turns.
"""
from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
import torch

import tenon

SIZES = {"4 Ki": 1 << 12, "256 Ki": 1 << 18, "4 Mi": 1 << 22}
DTYPES = {"c64": torch.complex64, "c128": torch.complex128}


def rotary(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Positions as in Llama's reference code: pairs of elements are complex numbers, turned by an angle."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(3).type_as(x)


def filtered(x: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
    """A filter in the frequency domain, with the response of two stages."""
    return torch.fft.ifft(torch.fft.fft(x) * response * response.conj())


def spectrogram(x: torch.Tensor) -> torch.Tensor:
    """The size of the spectrum in decibels."""
    return 20 * torch.log10(torch.fft.rfft(x.real).abs() + 1e-6)


PROGRAMS: dict[str, tuple[Callable, int]] = {
    "a*b": (lambda a, b: a * b, 2),
    "a*b+c": (lambda a, b, c: a * b + c, 3),
    "a/b": (lambda a, b: a / b, 2),
    "exp": (lambda a: torch.exp(a), 1),
    "abs": (lambda a: a.abs(), 1),
    "conj(a)*b": (lambda a, b: a.conj() * b, 2),
    "angle": (lambda a: a.angle(), 1),
    "polar": (lambda a: torch.polar(a.real, a.imag), 1),
    "|a|^2 over rows": (lambda a: (a.real**2 + a.imag**2).sum(-1), 1),
    "filter": (filtered, 2),
    "spectrogram": (spectrogram, 1),
}


def arguments(count: int, elements: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Rows of numbers around 0."""
    torch.manual_seed(0)
    return tuple(torch.randn(elements // 64, 64, dtype=dtype) for _ in range(count))


def rotary_arguments(elements: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries of heads of 64, as many elements as so many complex numbers have parts, and the turns of each position."""
    torch.manual_seed(0)
    heads, width = 8, 64
    positions = elements * 2 // (heads * width)
    angles = torch.outer(torch.arange(positions), 1 / 10000 ** (torch.arange(0, width, 2) / width))
    return torch.randn(1, positions, heads, width, dtype=dtype), torch.polar(torch.ones_like(angles), angles)[None, :, None]


def cases(elements: int, word: str) -> list[tuple[str, Callable, tuple]]:
    """Name, program and arguments."""
    made: list[tuple[str, Callable, tuple]] = []
    for kind, dtype in DTYPES.items():
        made += [(f"{name} {kind}", fn, arguments(count, elements, dtype)) for name, (fn, count) in PROGRAMS.items() if word in f"{name} {kind}"]
    made += [(f"rotary {kind}", rotary, rotary_arguments(elements, dtype)) for kind, dtype in {"f32": torch.float32, "bf16": torch.bfloat16}.items() if word in f"rotary {kind}"]
    return made


def least_ms(ways: dict[str, Callable], args: tuple, seconds: float) -> dict[str, float]:
    """The least milliseconds of a call of each, called in turns."""
    least = dict.fromkeys(ways, math.inf)
    for fn in ways.values():
        for _ in range(3):
            fn(*args)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, fn in ways.items():
            start = time.perf_counter()
            fn(*args)
            least[name] = min(least[name], (time.perf_counter() - start) * 1e3)
    return least


def main() -> None:
    """Prints eager's time, Tenon's, the ratio and the largest difference, by program and size."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.complex_numbers", description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    ratios = []
    for label, elements in SIZES.items():
        for name, fn, args in cases(elements, options.only):
            tenon.reset()
            compiled = tenon.compile(fn, options={"llvm": {"swap_tiers": False}})
            wanted = fn(*args)
            difference = float((compiled(*args) - wanted).abs().max() / wanted.abs().max())
            ms = least_ms({"eager": fn, "tenon": compiled}, args, options.seconds)
            ratios.append(ms["eager"] / ms["tenon"])
            print(f"{name:22} {label:>7}  eager {ms['eager']:9.4f} ms  tenon {ms['tenon']:9.4f} ms  {ratios[-1]:5.2f}  difference {difference:.1e}  breaks {tenon.stats()['graph_breaks']}", flush=True)
    print(f"geometric mean {float(np.exp(np.mean(np.log(ratios)))):.2f}, least {min(ratios):.2f}, of {len(ratios)}")


if __name__ == "__main__":
    main()
