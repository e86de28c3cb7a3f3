"""Programs of Python on the card, compiled, with torch's own execution there as the judge.

A part is a list of situations. Each prints a line; where one has ended all work on the card, the rest runs in another process."""
from __future__ import annotations

import copy
import os
import sys
import time
import traceback
from typing import Any, Callable

import torch

import tenon

D = os.environ.get("TENON_TEST_DEVICE", "cuda:0")


def placed(values: Any) -> Any:
    """A copy of arguments with their tensors and modules on the card; what is named "host" in a dict stays there."""
    if isinstance(values, torch.Tensor):
        with torch.no_grad():
            there = torch.empty_strided(values.shape, values.stride(), dtype=values.dtype, device=D) if values.numel() and 0 not in values.stride() else values.to(D)
            there.copy_(values)
        return there.requires_grad_(values.requires_grad) if values.is_leaf else there
    if isinstance(values, torch.nn.Module):
        return copy.deepcopy(values).to(D)
    if isinstance(values, dict):
        return {key: copy.deepcopy(value) if key == "host" else placed(value) for key, value in values.items()}
    if type(values) in (list, tuple):
        return type(values)(placed(value) for value in values)
    return values


def differences(got: Any, want: Any, rtol: float = 2e-3, atol: float = 1e-4) -> str:
    """Says in what two results differ."""
    if isinstance(want, torch.Tensor):
        if not isinstance(got, torch.Tensor):
            return f"{type(got).__name__} instead of a tensor"
        if (got.device, got.dtype, got.shape) != (want.device, want.dtype, want.shape):
            return f"{got.device} {got.dtype} {tuple(got.shape)} instead of {want.device} {want.dtype} {tuple(want.shape)}"
        if got.requires_grad != want.requires_grad:
            return f"requires_grad is {got.requires_grad}"
        wide = torch.complex128 if want.is_complex() else torch.float64
        if want.dtype in (torch.float16, torch.bfloat16):
            rtol, atol = max(rtol, 2e-2), max(atol, 2e-2)
        got_wide, want_wide = got.detach().to(wide), want.detach().to(wide)
        if not torch.allclose(got_wide, want_wide, rtol=rtol, atol=atol, equal_nan=True):
            return f"off by {(got_wide - want_wide).abs().max().item():.3g} of {want_wide.abs().max().item():.3g}"
        unlike = [n for n, a, b in zip(want.shape, got.stride(), want.stride()) if n != 1 and a != b]
        return f"strides {got.stride()} instead of {want.stride()}" if unlike and want.numel() else ""
    if isinstance(want, dict):
        return "; ".join(f"{key}: {what}" for key in want if (what := differences(got[key], want[key], rtol, atol))) if list(got) == list(want) else f"keys {list(got)}"
    if isinstance(want, (list, tuple)):
        return "; ".join(filter(None, (differences(g, w, rtol, atol) for g, w in zip(got, want)))) if len(got) == len(want) else f"{len(got)} results instead of {len(want)}"
    if isinstance(want, float):
        return "" if abs(got - want) <= atol + rtol * abs(want) or (got != got and want != want) else f"{got} instead of {want}"
    return "" if type(got) is type(want) and got == want else f"{got!r} instead of {want!r}"


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the type and the first line of what it raises."""
    try:
        return call()
    except Exception as raised:  # is compared with what eager raises
        return type(raised).__name__, str(raised).split("\n")[0]


def same_as_eager(fn: Callable, *values: Any, calls: int = 3, rtol: float = 2e-3, atol: float = 1e-4, **options: Any) -> str:
    """Calls a function plainly and compiled, some times, each time on fresh copies and from the same seed. Says what differs, of results, errors and arguments."""
    compiled = tenon.compile(fn, **options)
    for call in range(calls):
        mine, eager = placed(list(values)), placed(list(values))
        torch.manual_seed(call)
        want = outcome(lambda: fn(*eager))
        torch.manual_seed(call)
        got = outcome(lambda: compiled(*mine))
        if said := differences(got, want, rtol, atol):
            return f"call {call}: {said}"
        tensors = [[v for v in some if isinstance(v, torch.Tensor)] for some in (mine, eager)]
        if said := differences(*tensors, rtol, atol):
            return f"arguments after call {call}: {said}"
    return ""


def run(situations: dict[str, Callable[[], str]]) -> int:
    """Runs the situations that the command line names, or all. A situation says what is wrong, or nothing."""
    wanted = sys.argv[1:]
    names = [name for name in situations if not wanted or name in wanted]
    print(torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else D, "python", sys.version.split()[0], flush=True)
    wrong = []
    for at, name in enumerate(names):
        tenon.reset()
        start = time.perf_counter()
        try:
            said = situations[name]() or ""
            if torch.cuda.is_available():
                torch.cuda.synchronize()
        except BaseException as problem:  # the line says what came out
            said = f"{problem!r}"[:600] + " at " + " < ".join(f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno}" for f in reversed(traceback.extract_tb(problem.__traceback__)[-4:]))
        stats = tenon.stats()
        runs = {backend: counts["runs"] for backend, counts in stats["backends"].items() if counts["runs"]}
        print(f"{'WRONG' if said else 'ok   '} {name}: graphs {stats['graphs']}, breaks {stats['graph_breaks']}, eager {stats['eager_fallbacks']}, runs {runs}, "
              f"{time.perf_counter() - start:.1f} s {said}", flush=True)
        if said:
            wrong.append(name)
        if said and torch.cuda.is_available() and lost():
            rest = names[at + 1:]
            print("all work on the card has ended", flush=True)
            print("wrong:", wrong, flush=True)
            if rest:
                os.execv(sys.executable, [sys.executable, sys.argv[0], *rest])
            return 1
    print("wrong:", wrong, flush=True)
    return 1 if wrong else 0


def lost() -> bool:
    try:
        torch.cuda.synchronize()
        return False
    except Exception:
        return True
