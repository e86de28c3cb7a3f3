"""A transformer as the field writes it, so that the benchmark needs PyTorch alone."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """Causal attention and a multilayer perceptron, each behind a layer norm and beside a shortcut."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        split = [t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.attention(self.norm1(x)).chunk(3, 2)]
        attended = F.scaled_dot_product_attention(*split, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Radford et al. 2019, section 2.3; the output layer shares its weight with the embedding."""

    def __init__(self, layers: int = 6, width: int = 384, heads: int = 6, vocabulary: int = 1000, positions: int = 1024):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            nn.init.normal_(parameter, 0, 0.02)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)
