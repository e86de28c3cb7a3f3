"""Random numbers of a card in kernels of ours, with the bits of torch's own: a capture follows these functions in place of torch's.

torch's kernels on CUDA draw by Philox from a seed and an offset: which thread draws an element, and in which of its turns, follows from the number
of elements and from how many threads the card holds (aten/src/ATen/native/cuda: DistributionTemplates.h, Dropout.cu). ``philox_draw`` takes what a
call uses from torch's generator, on every run; ``philox_uniform`` is the catalogue's op. Each card is compared with torch once before anything is
drawn so. ``NotImplemented`` is for calls that torch's kernel makes.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_BLOCK = 256  # threads of a block
_WORDS = 4  # of 32 bits, that a thread draws at once
_LOW = 0xFFFFFFFF
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)

_library = torch.library.Library("tenon", "FRAGMENT")
_library.define("philox_draw(SymInt increment, int card, *, Device? device=None) -> (Tensor, Tensor)", tags=(torch.Tag.nondeterministic_seeded,))
_library.define("philox_uniform(Tensor seed, Tensor offset, SymInt[] size, SymInt threads, int vector=1, *, Device? device=None) -> Tensor")


def generator_of(card: int) -> torch.Generator:
    return torch.cuda.default_generators[card]


def is_capturing() -> bool:
    """Whether calls of this thread are recorded by torch.cuda.graph, which counts what is drawn in a way of its own."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def _draw(increment: int, card: int, device: torch.device | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    if device is not None:  # what it is like, at a capture
        return torch.empty((), dtype=torch.int64, device=device), torch.empty((), dtype=torch.int64, device=device)
    generator = generator_of(card)
    seed, offset = generator.initial_seed(), generator.get_offset()
    generator.set_offset(offset + increment)
    return torch.scalar_tensor(seed - (1 << 64) if seed >> 63 else seed, dtype=torch.int64), torch.scalar_tensor(offset // _WORDS, dtype=torch.int64)


def _uniform(seed: torch.Tensor, offset: torch.Tensor, size: Sequence[int], threads: int, vector: int = 1, device: torch.device | None = None) -> torch.Tensor:
    size = torch.Size(size)
    if seed.is_meta:
        return torch.empty(size, dtype=torch.float32, device=device or "meta")
    return _uniform_at(torch.arange(size.numel()), int(seed), int(offset), threads, vector).reshape(size).to(device or seed.device)


def _uniform_at(place: torch.Tensor, seed: int, offset: int, threads: int, vector: int) -> torch.Tensor:
    if vector == 1:
        of_turn = place % (_WORDS * threads)
        thread, turn, word = of_turn % threads, place // (_WORDS * threads), of_turn // threads
    else:
        group, within = place // vector, place % vector
        thread, turn, word = group % threads, group // threads * -(-vector // _WORDS) + within // _WORDS, within % _WORDS
    count = turn + offset
    block = [count & _LOW, count >> 32 & _LOW, thread & _LOW, thread >> 32 & _LOW]
    key_low, key_high = seed & _LOW, seed >> 32 & _LOW
    for _ in range(10):
        first, second = block[0] * 0xD2511F53, block[2] * 0xCD9E8D57
        block = [second >> 32 & _LOW ^ block[1] ^ key_low, second & _LOW, first >> 32 & _LOW ^ block[3] ^ key_high, first & _LOW]
        key_low, key_high = key_low + 0x9E3779B9 & _LOW, key_high + 0xBB67AE85 & _LOW
    return torch.stack(block).gather(0, word[None])[0].float() * 2.0**-32 + 2.0**-33


_library.impl("philox_draw", _draw, "CompositeExplicitAutograd")
_library.impl("philox_uniform", _uniform, "CompositeExplicitAutograd")


def _is_number(argument: Any) -> bool:
    return type(argument) is float or type(argument) is int


def _float32(number: float) -> float:
    return float(torch.scalar_tensor(number, dtype=torch.float32))


def _vector_for(count: int, size: int) -> int:
    """Elements that a thread of torch's dropout takes side by side: 16 bytes, or fewer where some would be left."""
    vector = 16 // size
    while count % vector != 0:
        vector //= 2
    return vector


def functions_on(device: torch.device, most: int) -> dict[str, Callable[..., Any]]:
    """Functions by torch's name for tensors of a device that holds `most` blocks of threads."""

    card, name = device.index, str(device)

    def threads_for(count: int) -> int:
        blocks = (count + _BLOCK - 1) // _BLOCK
        return _BLOCK * (blocks if blocks < most else most)

    def uniform(size: Any, count: int, vector: int) -> Any:
        threads = threads_for(count)
        increment = _WORDS * ((count - 1) // (_WORDS * threads) + 1)
        seed, offset = torch.ops.tenon.philox_draw.default(increment, card)
        return torch.ops.tenon.philox_uniform.default(seed, offset, size, threads, vector, device=name)

    def filled(size: Any, dtype: Any) -> Any:
        count = 1
        for extent in size:
            count *= extent
        if dtype not in _DTYPES or count == 0 or count > most * _BLOCK * _WORDS:  # beyond that a thread of torch's uses what it draws four times
            return NotImplemented
        drawn = uniform(size, count, 1).to(dtype)
        return drawn.masked_fill(drawn == 1, 0.0)

    def rand(*size: Any, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, **others: Any) -> Any:
        if others or requires_grad or (layout is not None and layout is not torch.strided):
            return NotImplemented
        if len(size) == 1 and isinstance(size[0], (tuple, list)):
            size = size[0]
        return filled(size, torch.get_default_dtype() if dtype is None else dtype)

    def rand_like(input: torch.Tensor, *, dtype: Any = None, **others: Any) -> Any:
        if others or not input.is_contiguous():
            return NotImplemented
        return filled(input.shape, input.dtype if dtype is None else dtype)

    def kept(input: torch.Tensor, p: float, train: Any) -> Any:
        if not train or not _is_number(p) or not 0 < p < 1 or input.dtype not in _DTYPES or input.numel() == 0:
            return NotImplemented
        if not input.is_contiguous():
            return NotImplemented
        return uniform(input.shape, input.numel(), _vector_for(input.numel(), input.element_size())) < 1.0 - p

    def native_dropout(input: torch.Tensor, p: float, train: Any) -> Any:
        mask = kept(input, p, train)
        return mask if mask is NotImplemented else (input * mask * scale_of(p), mask)

    def dropout(input: torch.Tensor, p: float, train: bool) -> Any:
        mask = kept(input, p, train)
        return mask if mask is NotImplemented else input * mask * scale_of(p)

    return {"rand": rand, "rand_like": rand_like, "native_dropout": native_dropout, "dropout": dropout}


def scale_of(p: float) -> float:
    """What torch's kernel multiplies kept elements by: 1 / (1 - p) of a float32."""
    return 1.0 / _float32(1.0 - p)


_known: dict[torch.device, dict[str, Callable[..., Any]]] = {}


def function_on(device: torch.device, name: str) -> Callable[..., Any] | None:
    """The function that draws as torch's of that name does on a device; None where there is none."""
    if device.type != "cuda" or is_capturing():
        return None
    if device not in _known:
        card = torch.cuda.get_device_properties(device)
        most = card.multi_processor_count * (card.max_threads_per_multi_processor // _BLOCK)
        functions = functions_on(device, most)
        _known[device] = {name: function for name, function in functions.items() if _agrees(device, name, most)}
    return _known[device].get(name)


def _agrees(device: torch.device, name: str, most: int) -> bool:
    """Whether torch draws as we do, where threads draw once and where they draw again; the generator is left as it was."""
    generator = generator_of(device.index)
    state = generator.get_state()
    try:
        for dtype in _DTYPES:
            again = most * _BLOCK * (8 if "dropout" in name else _WORDS) - 1000
            for count in (1000, 1001, 1002, again, *((again + 2000, again + 2001, again + 2002) if "dropout" in name else ())):
                if not _agrees_on(generator, device, "dropout" in name, dtype, count, most):
                    return False
        return True
    except RuntimeError:
        return False
    finally:
        generator.set_state(state)


def _agrees_on(generator: torch.Generator, device: torch.device, drops: bool, dtype: torch.dtype, count: int, most: int) -> bool:
    seed, skipped, threads = 0x123456789ABCDEF1, 12, _BLOCK * min(most, -(-count // _BLOCK))
    generator.manual_seed(seed)
    generator.set_offset(skipped)
    if drops:
        drawn = torch.native_dropout(torch.ones(count, dtype=dtype, device=device), 0.5, True)[1]
    else:
        drawn = torch.rand(count, dtype=dtype, device=device)
    place = torch.cat([torch.arange(0, count, 1 + count // 499), torch.arange(count - 400, count)])
    want = _uniform_at(place, seed, skipped // _WORDS, threads, _vector_for(count, dtype.itemsize) if drops else 1)
    want = want < 0.5 if drops else want.to(dtype).masked_fill(want.to(dtype) == 1, 0.0)
    advanced = _WORDS * ((count - 1) // (_WORDS * threads) + 1)
    return generator.get_offset() == skipped + advanced and torch.equal(drawn[place.to(device)].cpu(), want)
