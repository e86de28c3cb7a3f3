"""Operands of a wanted number of elements, made from the samples of an entry of torch's operator database."""
from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils._pytree import tree_leaves, tree_map

ELEMENTS = {"4 Ki": 1 << 12, "256 Ki": 1 << 18, "4 Mi": 1 << 22}
LAYOUTS = ("contiguous", "transposed", "channels last")
SAMPLES, CHOICES = 24, 6  # how many are looked at, and how many of these are tried
Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Resize:
    """How the sizes of a sample become others: `shape` tells of each operand's, `size` of a number in a list of sizes."""

    shape: Callable[[Shape], Shape]
    size: Callable[[int], int]
    spread: bool  # numbers that may be indices grow like the sizes


def tensors_of(sample: SampleInput) -> list[torch.Tensor]:
    """All operands of a sample."""
    return [x for x in tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(x, torch.Tensor)]


def largest(sample: SampleInput) -> torch.Tensor:
    """The operand whose elements are counted: of those with most, the first."""
    return max(tensors_of(sample), key=lambda t: (t.numel(), t.dim() > 0))


def _shapes(sample: SampleInput) -> set[Shape]:
    return {tuple(t.shape) for t in tensors_of(sample) if t.dim()}


def scaled(samples: Iterator[SampleInput], elements: int, layout: str) -> Iterator[SampleInput]:
    """Samples whose largest operand has about so many elements, the likeliest first; whether the op takes one, the caller tries."""
    torch.manual_seed(0)
    usable = [s for s in itertools.islice(samples, SAMPLES) if any(t.dim() and t.numel() for t in tensors_of(s))]
    usable = [s for s in usable if all(t.layout == torch.strided for t in tensors_of(s))]
    for sample in sorted(usable, key=lambda s: (largest(s).dim() < 2, len(_shapes(s)) > 1, -largest(s).numel()))[:CHOICES]:
        for resize in resizes(sample, elements, layout):
            try:
                made = _resized(sample, resize, layout)
            except (RuntimeError, ValueError, OverflowError):
                continue
            if made is not None and elements / 2 <= largest(made).numel() <= elements * 2:
                yield made


def resizes(sample: SampleInput, elements: int, layout: str) -> Iterator[Resize]:
    """Ways to make the sample's largest operand as large as that: a square for operands of one shape, then all sizes, then one of them."""
    main = tuple(largest(sample).shape)
    shapes = _shapes(sample)
    if shapes == {main} and (len(main) <= 3 or layout == "channels last"):
        side = round(elements**0.5)
        square = (4, 64, side // 16, side // 16) if layout == "channels last" else (side, side)
        yield Resize(lambda shape: square if shape == main else shape, lambda n: n, False)
    growth = elements / largest(sample).numel()
    sizes = sorted({n for n in main if n > 1}, reverse=True) or [1]
    several = [sizes] + [[n] for n in sizes]
    windowed = any(len(s) == len(main) >= 3 and s != main for s in shapes)
    for grown in several[1:] + several[:1] if windowed else several:
        yield from _by_values(main, grown, growth)
    yield from _by_place(main, growth)


def _by_values(main: Shape, grown: list[int], growth: float) -> Iterator[Resize]:
    """Each of these sizes grows, wherever it stands; in lists of sizes as well or not."""
    factor = growth ** (1 / sum(n in grown for n in main))
    sizes = {n: _rounded(n * factor) for n in grown}

    def shape(old: Shape) -> Shape:
        return tuple(sizes.get(n, n) for n in old)

    for spread in (True, False):
        yield Resize(shape, lambda n: n, spread)
        yield Resize(shape, lambda n: sizes.get(n, n), spread)


def _rounded(size: float) -> int:
    """As sizes of programs are: of some length, a multiple of 8."""
    return 8 * round(size / 8) if size >= 24 else max(1, round(size))


def _by_place(main: Shape, growth: float) -> Iterator[Resize]:
    """The first size grows alone: batches of what must stay as it is."""
    first = max(1, round(main[0] * growth))
    yield Resize(lambda old: (first, *old[1:]) if len(old) == len(main) and old[0] == main[0] else old, lambda n: n, False)


def _resized(sample: SampleInput, resize: Resize, layout: str) -> SampleInput | None:
    main = largest(sample)
    wanted = resize.shape(tuple(main.shape))
    if (layout == "transposed" and len(wanted) < 2) or (layout == "channels last" and len(wanted) != 4):
        return None

    def other(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            made = _filled(x, resize, x is not main and not x.is_floating_point())
            return _laid(made, layout) if made.dim() == len(wanted) else made
        return x

    made = tree_map(other, (sample.input, sample.args, sample.kwargs))
    args, kwargs = (_sizes(x, resize) for x in made[1:])
    return SampleInput(_sizes(made[0], resize), args=args, kwargs=kwargs)


def _sizes(x: Any, resize: Resize) -> Any:
    """Numbers in lists and tuples below `x`, as sizes; the arguments themselves are no such list."""
    if isinstance(x, dict):
        return {name: _in_list(value, resize) for name, value in x.items()}
    return tuple(_in_list(value, resize) for value in x) if type(x) is tuple else _in_list(x, resize)


def _in_list(x: Any, resize: Resize) -> Any:
    if type(x) in (list, tuple, torch.Size):
        return type(x)(resize.size(n) if type(n) is int else _in_list(n, resize) for n in x)
    return x


def _filled(old: torch.Tensor, resize: Resize, index: bool) -> torch.Tensor:
    """Numbers of the range of the old ones; matrices that only became more keep their elements."""
    shape = resize.shape(tuple(old.shape))
    if shape == tuple(old.shape) or not old.numel():
        return old.clone()
    if old.dim() > 2 and shape[1:] == tuple(old.shape[1:]):
        return old[torch.arange(shape[0]) % old.shape[0]].clone()
    if old.is_complex():
        return torch.complex(*(_uniform(part, shape) for part in (old.real, old.imag)))
    if old.is_floating_point():
        return _uniform(old, shape)
    values = old.flatten()[torch.randint(old.numel(), shape)]
    grown = max((b // a for a, b in zip(old.shape, shape) if a), default=1)
    if index and resize.spread and old.dtype == torch.int64 and grown > 1 and values.min() >= 0:
        return values * grown + torch.randint(grown, shape)
    return values


def _uniform(old: torch.Tensor, shape: Shape) -> torch.Tensor:
    finite = old[torch.isfinite(old)].double()
    low, high = (finite.min(), finite.max()) if finite.numel() else (-1.0, 1.0)
    return (torch.rand(shape, dtype=torch.float32 if old.dtype != torch.float64 else torch.float64) * (high - low) + low).to(old.dtype)


def _laid(x: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "transposed":
        return x.mT.contiguous().mT
    return x.contiguous(memory_format=torch.channels_last) if layout == "channels last" else x


@dataclasses.dataclass(frozen=True)
class Program:
    """A call of the op as a user writes it: a lambda of the operands, with everything else in its text."""

    text: str
    names: dict[str, Any]
    operands: tuple[torch.Tensor, ...]

    def function(self) -> Callable:
        """The lambda, made anew."""
        return eval(self.text, dict(self.names))


def program_of(op: Callable, sample: SampleInput) -> Program:
    """The sample's call as a program."""
    names: dict[str, Any] = {"op": op, "torch": torch}
    operands: list[torch.Tensor] = []
    arguments = [_text(x, operands, names) for x in (sample.input, *sample.args)]
    arguments += [f"{name}={_text(x, operands, names)}" for name, x in sample.kwargs.items()]
    return Program(f"lambda {', '.join(f't{i}' for i in range(len(operands)))}: op({', '.join(arguments)})", names, tuple(operands))


def _text(x: Any, operands: list[torch.Tensor], names: dict[str, Any]) -> str:
    if isinstance(x, torch.Tensor):
        operands.append(x)
        return f"t{len(operands) - 1}"
    if type(x) is list:
        return "[" + ", ".join(_text(one, operands, names) for one in x) + "]"
    if type(x) in (tuple, torch.Size):
        return "(" + "".join(_text(one, operands, names) + ", " for one in x) + ")"
    if type(x) is slice:
        return f"slice({x.start}, {x.stop}, {x.step})"
    if type(x) in (bool, int, str, type(None)) or isinstance(x, torch.dtype) or (type(x) is float and abs(x) < float("inf")):
        return repr(x)
    names[f"k{len(names)}"] = copy.copy(x)
    return f"k{len(names) - 1}"
