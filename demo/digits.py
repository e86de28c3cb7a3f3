"""A small convolution-free network for 8×8 digits, in plain PyTorch."""
import torch
from torch import nn


class Digits(nn.Module):
    """Classifies digits, given as (batch, 64) float32 in [0, 16]."""

    def __init__(self, width=128):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        h = self.layers(x / 16 - 0.5)
        return torch.softmax(self.head(h), dim=-1)


def stepper(net):
    """A training step of `net`, as one writes it anywhere: gives the loss."""
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.nll_loss(net(x).log(), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
