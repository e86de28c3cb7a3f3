"""What torch's autocast does to one call, found out from torch itself: by running the call on tensors without elements."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree


class _Probe(torch.Tensor):
    """A tensor that dispatches as one of a device does, autocast included, and computes metadata only."""

    @staticmethod
    def __new__(cls, meta: torch.Tensor, calls: list[tuple[Any, ...]], device: str) -> _Probe:
        made = torch.Tensor._make_wrapper_subclass(
            cls, meta.size(), strides=meta.stride(), storage_offset=meta.storage_offset(), dtype=meta.dtype, layout=meta.layout, device=device
        )
        made.meta = meta
        made.calls = calls
        made.of = device
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        probes = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, _Probe)]
        calls = probes[0].calls
        if "device" in kwargs and kwargs["device"] is not None:
            kwargs["device"] = torch.device("meta")
        given = {id(probe.meta): probe for probe in probes}
        meta_args, meta_kwargs = pytree.tree_map_only(torch.Tensor, _without_elements, (args, kwargs))
        result = func(*meta_args, **meta_kwargs)
        made = pytree.tree_map_only(torch.Tensor, lambda x: given[id(x)] if id(x) in given else _Probe(x, calls, probes[0].of), result)
        calls.append((func, probes, _given(func, args, kwargs, result), _described(result)))
        return made


def _without_elements(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.meta if isinstance(tensor, _Probe) else torch.empty_like(tensor, device="meta")


# What computes in the dtype of its result, of whatever dtype it reads: for CUDA autocast asks for float32 instead of casting.
_IN_DTYPE_OF_RESULT = {getattr(torch.ops.aten, name) for name in ("_softmax", "_log_softmax", "sum", "prod", "cumsum", "cumprod")}
_HALF_TO_FLOAT = {torch.ops.aten._softmax, torch.ops.aten._log_softmax}  # their last argument


def _given(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> str:
    packet = func.overloadpacket
    if packet not in _IN_DTYPE_OF_RESULT or not isinstance(result, torch.Tensor):
        return _described((args, kwargs))
    if packet in _HALF_TO_FLOAT:
        args = args[:2]
    kwargs = {name: value for name, value in kwargs.items() if name != "dtype"}
    return repr(pytree.tree_map_only(torch.Tensor, lambda x: (result.dtype, tuple(x.shape)), (args, kwargs)))


def _described(values: Any) -> str:
    return repr(pytree.tree_map_only(torch.Tensor, lambda x: (x.dtype, tuple(x.shape)), values))


Calls = list[tuple[Any, ...]]
_MOST_JUDGED = 4096
_judged: dict[tuple[Any, ...], tuple[Any, Any]] = {}


def _run(function: Callable[..., Any], args: Any, kwargs: Any, device: str) -> tuple[Calls, list[_Probe], Any]:
    """The operators that a call comes to, the tensors among its arguments, and what it gives."""
    calls: Calls = []
    probes: list[_Probe] = []
    known: dict[int, _Probe] = {}

    def probe(meta: torch.Tensor) -> _Probe:
        made = known.setdefault(id(meta), _Probe(meta, calls, "cpu" if device == "cpu" else f"{device}:0"))
        probes.append(made)
        return made

    args, kwargs = pytree.tree_map_only(torch.Tensor, probe, (args, kwargs))
    result = function(*args, **kwargs)
    return calls, probes, pytree.tree_map_only(_Probe, lambda x: x.meta, result)


def _whole(calls: Calls, result: Any) -> list[Any]:
    return [(func, given, made) for func, _, given, made in calls] + [_described(result)]


def _is_cast(func: Any) -> bool:
    return func is torch.ops.aten._to_copy.default


def _essence(calls: Calls, result: Any) -> list[Any]:
    """What a call computes: casts and views show in the operands of what uses them."""
    return [(func, given, made) for func, _, given, made in calls if not _is_cast(func) and not func.is_view] + [_described(result)]


def _casts_of_arguments(calls: Calls, probes: list[_Probe]) -> list[Any]:
    wanted: dict[int, Any] = {}
    for func, given, _, made in calls:
        if _is_cast(func) and any(given[0] is probe for probe in probes):
            wanted.setdefault(id(given[0]), made)
    return [wanted.get(id(probe)) for probe in probes]


def _eligible(probe: _Probe) -> bool:
    return probe.dtype.is_floating_point and probe.dtype != torch.float64


def _candidates(calls: Calls, probes: list[_Probe], fast: torch.dtype) -> Iterator[list[torch.dtype | None]]:
    found = _casts_of_arguments(calls, probes)
    dtypes = {repr((dtype, tuple(probe.shape))): dtype for probe in probes for dtype in (fast, torch.float32)}
    yield [dtypes.get(text) if text else None for text in found]
    for dtype in (fast, torch.float32):
        yield [dtype if _eligible(probe) and probe.dtype != dtype else None for probe in probes]


def _with_casts(args: Any, kwargs: Any, casts: list[torch.dtype | None]) -> Any:
    rest = iter(casts)

    def cast(meta: torch.Tensor) -> torch.Tensor:
        dtype = next(rest)
        return meta if dtype is None else torch.empty_like(meta, dtype=dtype)

    return pytree.tree_map_only(torch.Tensor, cast, (args, kwargs))


def _cross_entropy_in_parts(
    input: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None, reduction: int = 1, ignore_index: int = -100, label_smoothing: float = 0.0
) -> torch.Tensor:
    """What torch's C++ code makes of a loss by classes: it states the dtype of the logarithms, which keeps autocast from choosing one."""
    if label_smoothing or target.is_floating_point():
        raise RuntimeError("a loss by probabilities")
    logs = torch.log_softmax(input, 0 if input.dim() == 1 else 1, dtype=input.dtype)
    return torch._C._nn.nll_loss_nd(logs, target, weight, reduction, ignore_index)


# Functions that autocast changes in the middle, and the same by calls of which it casts arguments at most.
_PARTS = {torch._C._nn.cross_entropy_loss: _cross_entropy_in_parts}


def _in_parts(function: Callable[..., Any], args: Any, kwargs: Any, device: str, wanted: list[Any]) -> Callable[..., Any] | None:
    parts = _PARTS.get(function)
    try:
        if parts is not None:
            calls, _, result = _run(parts, args, kwargs, device)
            return parts if _whole(calls, result) == wanted else None
    except RuntimeError:
        pass
    return None


def judge(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], device: str) -> tuple[Any, Any]:
    """What autocast for a kind of device, as it is on in this thread, makes of a call with these tensors of the meta device.

    Gives ``(None, None)`` where it changes nothing; a list with the dtype to which each tensor must be cast (None: to none), in the order
    of the arguments, where it only casts arguments; ``(function, None)`` where that does the same by calls of which it casts arguments at
    most; else ``(call, result)``: a function that calls it under autocast, and what that gives.
    """
    fast = torch.get_autocast_dtype(device)
    key = (function, device, fast, _described((args, kwargs)))
    if key not in _judged:
        if len(_judged) >= _MOST_JUDGED:
            _judged.clear()
        verdict = _judge(function, device, fast, args, kwargs)
        if verdict[1] is not None:
            return verdict  # its result views these arguments, perhaps
        _judged[key] = verdict
    return _judged[key]


def _judge(function: Callable[..., Any], device: str, fast: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    calls, probes, result = _run(function, args, kwargs, device)
    torch.set_autocast_enabled(device, False)
    try:
        try:
            plain, _, plain_result = _run(function, args, kwargs, device)
            if _whole(plain, plain_result) == _whole(calls, result):
                return None, None
        except RuntimeError:  # dtypes that differ, where autocast makes them one
            pass
        for casts in _candidates(calls, probes, fast):
            cast_args, cast_kwargs = _with_casts(args, kwargs, casts)
            try:
                plain, _, plain_result = _run(function, cast_args, cast_kwargs, device)
            except RuntimeError:
                continue
            if _essence(plain, plain_result) == _essence(calls, result):
                return casts, None
    finally:
        torch.set_autocast_enabled(device, True)
    if parts := _in_parts(function, args, kwargs, device, _whole(calls, result)):
        return parts, None
    return functools.partial(call_under, function, device, fast), result


def call_under(function: Callable[..., Any], device: str, dtype: torch.dtype, *args: Any, **kwargs: Any) -> Any:
    """Calls a function under autocast, whatever the state of the thread; no cast of a weight outlives the call."""
    with torch.autocast(device, dtype=dtype, cache_enabled=False):
        return function(*args, **kwargs)


def change_nesting(levels: int) -> None:
    """Goes that many levels into nested autocasts, or out of them, as ``torch.autocast`` does."""
    step = torch.autocast_increment_nesting if levels > 0 else torch.autocast_decrement_nesting
    for _ in range(abs(levels)):
        step()
