"""What a random program may do in one step. Each takes two of the program's values and an integer that chooses.

A step gives None where the values do not suit it. Python decides on shapes, dtypes and the integer alone, so that a program is one graph.
"""
from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

Step = Callable[[Tensor, Tensor, int], "Tensor | None"]
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
DTYPES = (*FLOATS, torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16, torch.bool)
CONTINUOUS = (
    "exp sin cos tanh sigmoid relu sqrt rsqrt log1p expm1 erf reciprocal atan asinh tan sinh cosh exp2 log2 erfc digamma lgamma i0 sinc abs neg square "
    "nan_to_num clone contiguous positive softplus gelu silu mish hardswish elu selu leaky_relu logsigmoid hardtanh"
).split()
JUMPING = "floor ceil round trunc frac sign signbit isnan isinf isfinite".split()
SMOOTH_PAIRS = "add sub mul div maximum minimum hypot logaddexp fmax fmin xlogy atan2".split()
JUMPING_PAIRS = "eq ne lt le gt ge remainder fmod floor_divide copysign nextafter".split()
OF_INTEGERS = "add mul maximum minimum eq lt ge bitwise_and bitwise_or bitwise_xor".split()
OF_BOOLS = "logical_and logical_or logical_xor eq ne".split()
REDUCTIONS = "sum mean prod amax amin var std logsumexp norm nansum nanmean".split()
COUNTS = "any all count_nonzero argmax argmin".split()


def function(name: str) -> Callable[..., Tensor]:
    return getattr(torch, name, None) or getattr(F, name, None) or getattr(Tensor, name)


def is_float(x: Tensor) -> bool:
    return x.dtype.is_floating_point


def unary(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    return function(CONTINUOUS[choice % len(CONTINUOUS)])(x) if is_float(x) else ~x if x.dtype == torch.bool else -x


def jump(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    return function(JUMPING[choice % len(JUMPING)])(x) if is_float(x) else None


def beside(x: Tensor, y: Tensor) -> Tensor:
    """y where it broadcasts to x's shape, else one of its dtype."""
    try:
        torch.broadcast_shapes(x.shape, y.shape)
        return y
    except RuntimeError:
        return torch.ones((), dtype=y.dtype)


def pair(x: Tensor, y: Tensor, choice: int) -> Tensor | None:
    y = beside(x, y)
    bools, floats = x.dtype == y.dtype == torch.bool, is_float(x) and is_float(y)
    names = SMOOTH_PAIRS if floats else OF_BOOLS if bools else OF_INTEGERS if not (is_float(x) or is_float(y)) else ["add", "mul", "maximum"]
    return function(names[choice % len(names)])(x, y)


def jump_pair(x: Tensor, y: Tensor, choice: int) -> Tensor | None:
    y = beside(x, y)
    return function(JUMPING_PAIRS[choice % len(JUMPING_PAIRS)])(x, y) if x.dtype == y.dtype and x.dtype in (torch.float32, torch.float64) else x == y


def number(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    if x.dtype == torch.bool:
        return x + 1
    c = (2, 3, 0.5, -1, 1.5)[choice % 5]
    return (lambda: x + c, lambda: c - x, lambda: x * c, lambda: x / c, lambda: x**2, lambda: torch.clamp(x, -1, 3))[choice % 6]()


def reduction(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    name = REDUCTIONS[choice % len(REDUCTIONS)] if is_float(x) else "sum"
    if x.ndim == 0 or choice % 7 == 0 or x.numel() == 0:
        return torch.sum(x)
    options = {"correction": 0} if name in ("var", "std") else {}
    return function(name)(x, dim=choice % x.ndim, keepdim=choice % 2 == 0, **options)


def count(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    name = COUNTS[choice % (5 if x.dtype != torch.bool else 3)]
    return function(name)(x, dim=choice % x.ndim) if x.ndim and x.numel() else None


def view(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    n = x.ndim
    if n == 0:
        return x.reshape(1)
    return (
        lambda: x.transpose(0, -1), lambda: x.reshape(-1), lambda: x.unsqueeze(choice % (n + 1)), lambda: x.permute(*reversed(range(n))),
        lambda: x[::2], lambda: x[..., 1:] if x.shape[-1] > 1 else x, lambda: x.flip(0), lambda: x.expand(2, *x.shape), lambda: torch.roll(x, 1, -1),
        lambda: x.select(choice % n, 0), lambda: F.pad(x, (1, 2)) if x.dtype != torch.bool else x, lambda: x.squeeze(), lambda: x.tile(2), lambda: x[..., None, :],
    )[choice % 14]()  # fmt: skip


def choose(x: Tensor, y: Tensor, choice: int) -> Tensor | None:
    other = y if y.shape == x.shape and y.dtype == x.dtype else torch.zeros((), dtype=x.dtype)
    return torch.where(x if x.dtype == torch.bool else x > 0, x, other) if choice % 3 else torch.where(torch.zeros_like(x) == 0, x, other)


def join(x: Tensor, y: Tensor, choice: int) -> Tensor | None:
    other = y if y.shape == x.shape else x
    return torch.cat([x, other], choice % x.ndim) if x.ndim and choice % 2 else torch.stack([x, other], choice % (x.ndim + 1))


def write(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    """In place: on a copy, or on the value itself, which may be an input or a view of one."""
    overlaps = any(step == 0 and size > 1 for step, size in zip(x.stride(), x.shape))
    x = x.clone(memory_format=torch.contiguous_format) if overlaps or choice % 3 else x
    if not is_float(x):
        return x.fill_(1) if choice % 2 else x.zero_()
    return (
        lambda: x.add_(0.5), lambda: x.mul_(0.5), lambda: x.clamp_(-0.5, 0.5), lambda: x.relu_(), lambda: x.zero_(), lambda: x.fill_(1), lambda: x.neg_(),
        lambda: x.tanh_(), lambda: x.copy_(x.flip(0) if x.ndim else x), lambda: x.abs_(),
    )[choice % 10]()  # fmt: skip


def write_parts(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    """Many writes to small parts of a tensor, from what was written before, with views and copies of what it was in between."""
    if x.ndim == 0 or x.numel() == 0 or x.numel() > 2_000 or x.dtype == torch.bool:
        return None
    whole = x.reshape(1, -1).repeat(max(12, 1100 // x.numel()), 1) if choice % 5 else x.reshape(1, -1).expand(12, x.numel()).contiguous() * 2
    if choice % 4 == 3:
        whole = whole.T
    rows, columns = whole.shape
    if rows < 5:
        return None
    shown, kept = whole[rows // 2], None
    for i in range(1, 9):
        kind = (choice // 4 + i * (choice // 16 % 3)) % 6
        if kind == 0:
            whole[i % rows] = whole[(i - 1) % rows] * 0.5
        elif kind == 1:
            whole[:, i % columns] += whole[:, (i - 1) % columns]
        elif kind == 2:
            whole[2:5, i % columns] = whole[1:4, i % columns] - shown[:1]
        elif kind == 3:
            whole[i % rows, ::2] = 1
        elif kind == 4:
            whole[-2:, -1:] = whole[:2, :1] + shown[:1]
        else:
            whole[i % rows, i % columns] = whole[i % rows].sum() * 0.125
        if i == choice % 11:
            kept = whole[:2] * 2 if choice % 2 else whole.clone()
    return whole if kept is None else whole[: len(kept), : kept.shape[1]] - kept


def index(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    if x.ndim == 0 or x.shape[0] == 0:
        return None
    rows = torch.tensor([0, x.shape[0] - 1, x.shape[0] // 2])
    if choice % 3 == 0:
        written = x.clone()
        written[rows] = 1
        return written
    return x[rows - x.shape[0]] if choice % 3 == 1 else x.index_select(0, rows)


def gather(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    if x.ndim == 0 or x.shape[-1] == 0 or x.dtype == torch.bool:
        return None
    places = torch.zeros(x.shape, dtype=torch.int64)
    return x.gather(-1, places) if choice % 2 else torch.zeros_like(x).scatter_add_(-1, places, x)


def normalise(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    if not is_float(x) or x.ndim == 0 or x.shape[-1] < 2:
        return None
    rows = x.shape[-1:]
    return (lambda: F.softmax(x, -1), lambda: F.log_softmax(x, 0), lambda: F.layer_norm(x, rows), lambda: F.normalize(x, dim=-1), lambda: F.rms_norm(x, rows))[choice % 5]()


def multiply(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    if not is_float(x) or x.ndim == 0:
        return None
    return torch.outer(x, x) if x.ndim == 1 else x @ x.transpose(-1, -2)


def project(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    if x.dtype != torch.float32 or x.ndim == 0 or x.numel() > 50_000:
        return None
    weight = torch.linspace(-1, 1, (4, 16, 32)[choice % 3] * x.shape[-1]).view(-1, x.shape[-1]) / max(x.shape[-1], 1) ** 0.5
    return F.linear(x, weight, weight[:, 0].contiguous() if x.shape[-1] and choice % 2 else None)


def scale(x: Tensor, y: Tensor, choice: int) -> Tensor | None:
    """By what a row, of itself or of another value, comes to."""
    if not is_float(x) or x.ndim == 0 or x.shape[-1] == 0:
        return None
    rows = y if y.shape == x.shape and y.dtype == x.dtype and choice % 3 else x
    size = rows.square().mean(-1, keepdim=True) if choice % 2 else rows.abs().amax(-1, keepdim=True)
    return x * torch.rsqrt(size + 1) if choice % 5 else size


def cast(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    to = DTYPES[choice % len(DTYPES)]
    return x.to(to) if to in FLOATS or not is_float(x) else None


def pool(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    if x.ndim not in (3, 4) or min(x.shape[-2:]) < 2 or x.dtype not in (torch.float32, torch.float64):
        return None
    batch = x if x.ndim == 4 else x[None]
    return (lambda: F.max_pool2d(x, 2), lambda: F.avg_pool2d(x, 2), lambda: F.adaptive_avg_pool2d(x, 1), lambda: F.interpolate(batch, scale_factor=2, mode="nearest"))[choice % 4]()


def convolve(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    if x.ndim != 4 or x.dtype not in (torch.float32, torch.float64) or x.shape[1] > 20 or x.numel() > 50_000:
        return None
    return F.conv2d(x, torch.full((3, x.shape[1], 3, 3), 0.1, dtype=x.dtype), padding=1, stride=1 + choice % 2)


def create(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    return (
        lambda: torch.arange(x.numel() % 7 + 1), lambda: torch.zeros_like(x), lambda: torch.ones(x.shape), lambda: torch.full_like(x, 1),
        lambda: torch.linspace(0, 1, 5), lambda: torch.nansum(torch.zeros_like(x)) if is_float(x) else torch.zeros_like(x).sum(),
    )[choice % 6]()  # fmt: skip


def order(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    if x.ndim == 0 or x.dtype == torch.bool or x.shape[-1] == 0:
        return None
    return torch.sort(x, -1).values if choice % 2 else torch.topk(x, 1, -1).values


def scan(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    if x.ndim == 0 or x.dtype == torch.bool or x.shape[0] == 0:
        return None
    return torch.cumsum(x, 0) if choice % 3 == 0 else torch.cumprod(x, 0) if choice % 3 == 1 else torch.cummax(x, 0).values


def loss(x: Tensor, _: Tensor, choice: int) -> Tensor | None:
    losses = (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss)
    return losses[choice % 4](x, x * 2) if is_float(x) else None


# Those of the second group jump where their input hardly changes: they are for values without rounding errors.
STEADY: tuple[Step, ...] = (
    unary, unary, pair, pair, number, reduction, reduction, view, view, view, choose, join, write, write_parts, index, gather, normalise, multiply, project, project, scale, scale, cast, pool, convolve, create,
    order, scan, loss,
)  # fmt: skip
JUMPY: tuple[Step, ...] = (jump, jump_pair, count, choose)
# What gives no rounding errors of its own.
EXACT: tuple[Step, ...] = (view, join, index, create, order, *JUMPY)
