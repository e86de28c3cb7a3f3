"""Functions that torch writes in C and that no op has a gradient for, in Python: a capture follows it where a gradient is wanted.

They compute, and draw random numbers, as ATen does on the CPU, in the same order (aten/src/ATen/native: Dropout.cpp, Activation.cpp,
transformers/attention.cpp, RNN.cpp, WeightNorm.cpp), and on other devices where that is known. ``NotImplemented`` is for calls that only the
original makes.
"""
from __future__ import annotations

import math
from typing import Any

import torch

_ALPHA = 1.7580993408473766


def dropout(input: torch.Tensor, p: float, train: bool) -> Any:
    if not input.is_cpu and _is_number(p) and 0 < p < 1 and train and input.numel() > 0:
        _, mask = torch.native_dropout(input.detach(), p, True)
        return input * mask * (1.0 / (1.0 - p))
    return _dropped(input, p, train, _noise_of_elements, False)


def dropout_(input: torch.Tensor, p: float, train: bool) -> Any:
    return _dropped(input, p, train, _noise_of_elements, True)


def feature_dropout(input: torch.Tensor, p: float, train: bool) -> Any:
    return _dropped(input, p, train, _noise_of_features, False)


def feature_dropout_(input: torch.Tensor, p: float, train: bool) -> Any:
    return _dropped(input, p, train, _noise_of_features, True)


def alpha_dropout(input: torch.Tensor, p: float, train: bool) -> Any:
    return _dropped(input, p, train, _noise_of_elements, False, alpha=True)


def alpha_dropout_(input: torch.Tensor, p: float, train: bool) -> Any:
    return _dropped(input, p, train, _noise_of_elements, True, alpha=True)


def feature_alpha_dropout(input: torch.Tensor, p: float, train: bool) -> Any:
    return _dropped(input, p, train, _noise_of_features, False, alpha=True)


def feature_alpha_dropout_(input: torch.Tensor, p: float, train: bool) -> Any:
    return _dropped(input, p, train, _noise_of_features, True, alpha=True)


def _dropped(input: torch.Tensor, p: float, train: bool, noise_of: Any, in_place: bool, alpha: bool = False) -> Any:
    if not _is_number(p) or not 0 <= p <= 1:
        return NotImplemented
    if p == 0 or not train or input.numel() == 0:
        return input
    if p == 1:
        nothing = input.new_zeros(())
        return input.mul_(nothing) if in_place else input.mul(nothing)
    noise = noise_of(input, 1 - p)
    if noise is NotImplemented:
        return noise
    if not alpha:
        noise = noise.div_(1 - p)
        return input.mul_(noise) if in_place else input.mul(noise)
    a = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    shift = noise.add(-1).mul_(_ALPHA * a).add_(_ALPHA * a * p)
    noise = noise.mul_(a)
    return (input.mul_(noise) if in_place else input.mul(noise)).add_(shift)


def _is_number(argument: Any) -> bool:
    """Not a tensor, which C takes for a number and Python computes with."""
    return type(argument) is float or type(argument) is int


def _noise_of_elements(input: torch.Tensor, kept: float) -> Any:
    return torch.zeros_like(input).bernoulli_(kept)


def _noise_of_features(input: torch.Tensor, kept: float) -> Any:
    if input.dim() < 2:
        return NotImplemented
    return input.new_zeros((input.size(0), input.size(1)) + (1,) * (input.dim() - 2)).bernoulli_(kept)


def rrelu(input: torch.Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, generator: Any = None) -> Any:
    if not training or generator is not None or not _is_number(lower) or not _is_number(upper) or upper - lower <= 1e-6:
        return NotImplemented
    _, noise = torch.ops.aten.rrelu_with_noise_functional.default(input.detach(), torch.zeros_like(input), lower, upper, True)
    return input * noise


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if not query.is_cpu:
        return NotImplemented  # kernels of the device draw in an order of their own
    if not _is_number(dropout_p) or not (scale is None or _is_number(scale)) or not 0 < dropout_p <= 1 or query.dim() < 2 or (is_causal and attn_mask is not None) or query.dtype is not key.dtype or query.dtype is not value.dtype:
        return NotImplemented
    dtype = query.dtype
    if dtype is torch.float16 or dtype is torch.bfloat16:
        query, key, value = query.float(), key.float(), value.float()
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    factor = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    root = math.sqrt(abs(factor))
    scores = torch.matmul(query * (-root if factor < 0 else root), key.transpose(-2, -1) * root)
    if is_causal:
        attn_mask = torch.ones((query.size(-2), key.size(-2)), dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = scores + torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(attn_mask.logical_not(), -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = dropout(torch._safe_softmax(scores, -1), dropout_p, True)
    return torch.matmul(weights, value).to(dtype)


def _is_state(state: torch.Tensor, x: torch.Tensor, w_hh: torch.Tensor) -> bool:
    return state.shape == (x.size(0), w_hh.size(1))


def _lstm_step(of_state: torch.Tensor, of_input: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> tuple:
    entry, forget, candidate, exit = (of_state + of_input).chunk(4, 1)
    cell = forget.sigmoid() * cell + entry.sigmoid() * candidate.tanh()
    return exit.sigmoid() * cell.tanh(), cell


def _gru_step(of_state: torch.Tensor, of_input: torch.Tensor, hidden: torch.Tensor) -> tuple:
    reset, update, candidate = of_input.chunk(3, 1)
    reset_of_state, update_of_state, candidate_of_state = of_state.chunk(3, 1)
    new = (candidate + (reset_of_state + reset).sigmoid() * candidate_of_state).tanh()
    return ((hidden - new) * (update_of_state + update).sigmoid() + new,)


def _tanh_step(of_state: torch.Tensor, of_input: torch.Tensor, hidden: torch.Tensor) -> tuple:
    return ((of_state + of_input).tanh(),)


def _relu_step(of_state: torch.Tensor, of_input: torch.Tensor, hidden: torch.Tensor) -> tuple:
    return ((of_state + of_input).relu(),)


def lstm_cell(input: torch.Tensor, hx: Any, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: torch.Tensor | None = None, b_hh: torch.Tensor | None = None) -> Any:
    hidden, cell = hx
    if not _is_state(hidden, input, w_hh) or not _is_state(cell, input, w_hh):
        return NotImplemented  # projections too
    return _lstm_step(_linear(hidden, w_hh, b_hh), _linear(input, w_ih, b_ih), hidden, cell)


def _cell(step: Any, input: torch.Tensor, hx: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: torch.Tensor | None, b_hh: torch.Tensor | None) -> Any:
    if not _is_state(hx, input, w_hh):
        return NotImplemented
    return step(_linear(hx, w_hh, b_hh), _linear(input, w_ih, b_ih), hx)[0]


def gru_cell(input: torch.Tensor, hx: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: torch.Tensor | None = None, b_hh: torch.Tensor | None = None) -> Any:
    return _cell(_gru_step, input, hx, w_ih, w_hh, b_ih, b_hh)


def rnn_tanh_cell(input: torch.Tensor, hx: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: torch.Tensor | None = None, b_hh: torch.Tensor | None = None) -> Any:
    return _cell(_tanh_step, input, hx, w_ih, w_hh, b_ih, b_hh)


def rnn_relu_cell(input: torch.Tensor, hx: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: torch.Tensor | None = None, b_hh: torch.Tensor | None = None) -> Any:
    return _cell(_relu_step, input, hx, w_ih, w_hh, b_ih, b_hh)


MOST_STEPS = 256  # of layers, directions and places together, that one graph holds


def lstm(input: torch.Tensor, hx: Any, *settings: Any) -> Any:
    return _layers(_lstm_step, input, tuple(hx), settings) if type(hx) in (tuple, list) else NotImplemented  # a packed sequence has its sizes there


def gru(input: torch.Tensor, hx: Any, *settings: Any) -> Any:
    return _layers(_gru_step, input, (hx,), settings)


def rnn_tanh(input: torch.Tensor, hx: Any, *settings: Any) -> Any:
    return _layers(_tanh_step, input, (hx,), settings)


def rnn_relu(input: torch.Tensor, hx: Any, *settings: Any) -> Any:
    return _layers(_relu_step, input, (hx,), settings)


def _layers(step: Any, x: torch.Tensor, states: tuple, settings: tuple) -> Any:
    """All layers and directions over a sequence, step by step. What depends on the inputs alone is computed before, for all places at once."""
    if len(settings) != 7 or not isinstance(settings[0], (list, tuple)):
        return NotImplemented
    parameters, has_biases, layers, dropped, train, bidirectional, batch_first = settings
    directions = 2 if bidirectional else 1
    each = 4 if has_biases else 2
    if not x.is_cpu:
        return NotImplemented  # a device has kernels for whole sequences
    if x.dim() != 3 or len(parameters) != layers * directions * each:
        return NotImplemented
    if batch_first:
        x = x.transpose(0, 1)
    if x.shape[0] * layers * directions > MOST_STEPS:
        return NotImplemented
    last = []
    for layer in range(layers):
        ways = []
        for direction in range(directions):
            at = layer * directions + direction
            own = parameters[at * each : (at + 1) * each]
            state = tuple([s[at] for s in states])
            w_ih, w_hh = own[:2]
            b_ih, b_hh = own[2:] if has_biases else (None, None)
            for one in state:
                if one.shape != (x.size(1), w_hh.size(1)):
                    return NotImplemented
            places = list(_linear(x, w_ih, b_ih).unbind(0))
            if direction:
                places.reverse()
            outputs = []
            for place in places:
                state = step(_linear(state[0], w_hh, b_hh), place, *state)
                outputs.append(state[0])
            if direction:
                outputs.reverse()
            ways.append(torch.stack(outputs, 0))
            last.append(state)
        x = torch.cat(ways, -1) if bidirectional else ways[0]
        if dropped > 0 and train and layer < layers - 1:
            x = dropout(x, dropped, True)
    if batch_first:
        x = x.transpose(0, 1)
    return (x, *[torch.stack([state[k] for state in last], 0) for k in range(len(states))])


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return torch.nn.functional.linear(x, weight, bias)


def _weight_norm(v: torch.Tensor, g: torch.Tensor, dim: int = 0) -> Any:
    if v.dtype is torch.float16 or v.dtype is torch.bfloat16:
        return NotImplemented  # computed in float32 as a whole
    return v * (g / norm_except_dim(v, 2, dim))


def norm_except_dim(v: torch.Tensor, pow: int = 2, dim: int = 0) -> Any:
    if dim == -1:
        return v.norm(pow)
    if v.dim() < 1 or not 0 <= dim < v.dim():
        return NotImplemented
    size = v.size(dim)
    return v.transpose(0, dim).reshape(size, -1).norm(pow, 1).reshape((1,) * dim + (size,) + (1,) * (v.dim() - dim - 1))


def as_strided(input: torch.Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    """What lies at given places, as windows on the elements as they lie in memory: one around the other, for each dimension."""
    in_memory = input.permute(sorted(range(input.dim()), key=lambda d: -input.stride(d)))
    if storage_offset is not None or not in_memory.is_contiguous() or input.is_complex() or len(size) != len(stride):
        return NotImplemented
    size, stride = [int(count) for count in size], [int(step) for step in stride]
    last = 0
    for count, step in zip(size, stride):
        if count < 1 or step < 0:
            return NotImplemented
        last += (count - 1) * step
    if last >= input.numel():
        return NotImplemented
    part = in_memory.view(-1)[: last + 1]
    for count, step in zip(size, stride):
        last -= (count - 1) * step
        if step == 0:
            part = part.unsqueeze(-2).expand(*part.shape[:-1], count, last + 1)
        else:
            part = part.unfold(-1, last + 1, step)
    return part.squeeze(-1)
