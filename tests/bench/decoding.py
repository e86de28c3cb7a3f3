"""A language model that writes one token a call, as the field writes them, so that the benchmark needs PyTorch alone."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    """Attention over grouped heads with rotated queries and keys, and a gated network behind it; the keys and values of all positions are kept."""

    def __init__(self, width: int, heads: int, groups: int, inner: int, positions: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, n * self.size, bias=False) for n in (heads, groups, groups))
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)
        self.register_buffer("keys", torch.zeros(1, groups, positions, self.size))
        self.register_buffer("values", torch.zeros(1, groups, positions, self.size))

    def forward(self, x, position, turn, seen):
        y = self.norm1(x)
        q, k, v = (linear(y).view(1, 1, n, self.size).transpose(1, 2) for linear, n in ((self.q, self.heads), (self.k, self.groups), (self.v, self.groups)))
        self.keys[:, :, position], self.values[:, :, position] = turned(k, turn), v
        y = F.scaled_dot_product_attention(turned(q, turn), self.keys, self.values, attn_mask=seen, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(1, 1, -1))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def turned(x, turn):
    """Each half of a head by the other's angles (Su et al. 2021, arXiv 2104.09864)."""
    cos, sin = turn
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Decoder(nn.Module):
    """Logits of the token behind the one at a position."""

    def __init__(self, layers: int = 16, width: int = 2048, heads: int = 32, groups: int = 8, inner: int = 8192, vocabulary: int = 32000, positions: int = 2048) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads, groups, inner, positions) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
        angles = torch.outer(torch.arange(positions), 1 / 10000 ** (torch.arange(0, width // heads, 2) / (width // heads))).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("seen", torch.ones(positions, positions, dtype=torch.bool).tril())

    def forward(self, token, position):
        x, turn, seen = self.embedding(token), (self.cos[position], self.sin[position]), self.seen[position][None, None]
        for layer in self.layers:
            x = layer(x, position, turn, seen)
        return self.head(self.norm(x))
