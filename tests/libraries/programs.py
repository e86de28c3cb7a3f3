"""Networks as people write them, that no library of models has: name -> (module, arguments)."""
from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from tests.libraries.sweep import Case


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


class Attention(nn.Module):
    """Over the places of a picture, beside itself."""

    def __init__(self, channels: int):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(4, channels), nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        batch, channels, height, width = x.shape
        q, k, v = self.qkv(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, -1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, channels, height, width))


class Residual(nn.Module):
    """A block of a diffusion network, told the time."""

    def __init__(self, given: int, made: int, time: int):
        super().__init__()
        self.first, self.second = nn.Conv2d(given, made, 3, padding=1), nn.Conv2d(made, made, 3, padding=1)
        self.norms, self.time = nn.ModuleList([nn.GroupNorm(4, given), nn.GroupNorm(4, made)]), nn.Linear(time, made)
        self.skip = nn.Conv2d(given, made, 1) if given != made else nn.Identity()

    def forward(self, x, time):
        h = self.first(F.silu(self.norms[0](x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.second(F.silu(self.norms[1](h)))


class UNet(nn.Module):
    """Of a diffusion model, for pictures of 32 x 32 and times."""

    def __init__(self, widths=(16, 32, 64)):
        super().__init__()
        self.enter, self.time = nn.Conv2d(3, widths[0], 3, padding=1), nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 64))
        self.down = nn.ModuleList(Residual(a, b, 64) for a, b in zip((widths[0], *widths), widths))
        self.middle = Attention(widths[-1])
        self.up = nn.ModuleList(Residual(2 * b, a, 64) for a, b in zip((widths[0], *widths), widths))
        self.leave = nn.Conv2d(widths[0], 3, 3, padding=1)

    def forward(self, x, t):
        angles = t[:, None] * torch.exp(-math.log(1000) * torch.arange(8) / 8)
        time, h, skips = self.time(torch.cat([angles.sin(), angles.cos()], 1)), self.enter(x), []
        for block in self.down:
            h = block(h, time)
            skips.append(h)
            h = F.avg_pool2d(h, 2)
        h = self.middle(h)
        for block in reversed(self.up):
            h = block(torch.cat([F.interpolate(h, scale_factor=2, mode="nearest"), skips.pop()], 1), time)
        return self.leave(h)


class Words(nn.Module):
    """Tells texts apart by two LSTMs."""

    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(100, 24, padding_idx=0), nn.LSTM(24, 32, 2, batch_first=True, bidirectional=True), nn.Linear(64, 5)

    def forward(self, words):
        states, _ = self.lstm(self.embedding(words))
        return self.head(states.mean(1))


class GCN(nn.Module):
    """Two layers over a graph's edges."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(12, 32), nn.Linear(32, 4)])

    def forward(self, nodes, edges):
        source, target = edges
        degree = torch.zeros(len(nodes)).index_add_(0, target, torch.ones(len(source))).clamp(min=1)
        for at, layer in enumerate(self.layers):
            sent = layer(nodes)[source] / (degree[source] * degree[target]).sqrt()[:, None]
            nodes = torch.zeros(len(nodes), sent.shape[1], dtype=sent.dtype).index_add(0, target, sent)
            nodes = nodes.relu() if at == 0 else nodes
        return nodes.log_softmax(1)


class GAT(nn.Module):
    """One layer of attention over a graph's edges, by scatters."""

    def __init__(self):
        super().__init__()
        self.value, self.query = nn.Linear(12, 16), nn.Linear(32, 1)

    def forward(self, nodes, edges):
        source, target = edges
        values = self.value(nodes)
        score = F.leaky_relu(self.query(torch.cat([values[source], values[target]], 1)), 0.2).squeeze(1)
        highest = torch.full((len(nodes),), -1e9, dtype=score.dtype).scatter_reduce(0, target, score.detach(), "amax")
        weight = (score - highest[target]).exp()
        total = torch.zeros(len(nodes), dtype=score.dtype).scatter_add(0, target, weight)
        return F.elu(torch.zeros_like(values).index_add(0, target, values[source] * (weight / total[target])[:, None]))


class NeRF(nn.Module):
    """Colours of rays through a field."""

    def __init__(self):
        super().__init__()
        self.field = nn.Sequential(nn.Linear(36, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, origins, directions):
        depths = torch.linspace(1, 4, 24, dtype=origins.dtype)
        points = origins[:, None] + directions[:, None] * depths[:, None]
        waves = points[..., None] * 2.0 ** torch.arange(6)
        raw = self.field(torch.cat([waves.sin(), waves.cos()], -1).flatten(-2))
        opacity = 1 - torch.exp(-F.relu(raw[..., 3]) * (depths[1] - depths[0]))
        clear = torch.cumprod(torch.cat([torch.ones_like(opacity[:, :1]), 1 - opacity + 1e-10], 1), 1)[:, :-1]
        return (torch.sigmoid(raw[..., :3]) * (opacity * clear)[..., None]).sum(1)


class Policy(nn.Module):
    """REINFORCE with a baseline: minus what is gained, for actions that were taken."""

    def __init__(self):
        super().__init__()
        self.body, self.actor, self.critic = nn.Sequential(nn.Linear(6, 64), nn.Tanh()), nn.Linear(64, 4), nn.Linear(64, 1)

    def forward(self, states, actions, rewards):
        h = self.body(states)
        gained = rewards.flip(0).cumsum(0).flip(0)
        advantage = gained - self.critic(h).squeeze(-1)
        choice = torch.distributions.Categorical(logits=self.actor(h))
        return -(choice.log_prob(actions) * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean() - 0.01 * choice.entropy().mean()


class VAE(nn.Module):
    """The mean is what is decoded: float64 could not be told the same noise."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16)), nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64))

    def forward(self, x):
        mean, spread = self.encode(x).chunk(2, -1)
        return F.mse_loss(self.decode(mean + 0.1 * spread.exp()), x) - 0.5 * (1 + spread - mean.pow(2) - spread.exp()).mean()


class Siamese(nn.Module):
    """One convolutional network over two pictures, and a contrast between them."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.LazyLinear(24))
        self.net(torch.zeros(2, 1, 28, 28))

    def forward(self, a, b):
        a, b = F.normalize(self.net(a)), F.normalize(self.net(b))
        return F.cross_entropy(a @ b.T / 0.2, torch.arange(len(a)))


class Detector(nn.Module):
    """Boxes and classes over a grid, with the overlap of boxes as loss."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.SiLU())
        self.boxes, self.classes = nn.Conv2d(32, 4, 1), nn.Conv2d(32, 5, 1)

    def forward(self, pictures, wanted, classes):
        h = self.body(pictures)
        left, top, right, bottom = F.softplus(self.boxes(h)).unbind(1)
        low = torch.minimum(torch.stack([left, top]), wanted[:2, :, None, None]) + torch.minimum(torch.stack([right, bottom]), wanted[2:, :, None, None])
        both = low.prod(0)
        union = (left + right) * (top + bottom) + ((wanted[0] + wanted[2]) * (wanted[1] + wanted[3]))[:, None, None] - both
        return -(both / union + 1e-6).log().mean() + F.binary_cross_entropy_with_logits(self.classes(h), classes)


def edges() -> torch.Tensor:
    return torch.randint(0, 30, (2, 120), generator=torch.Generator().manual_seed(1))


PROGRAMS: dict[str, Callable[[], Case]] = {
    "diffusion UNet": lambda: (UNet(), (noise(2, 3, 32, 32), torch.tensor([3.0, 70.0])), {}),
    "LSTM": lambda: (Words(), (torch.randint(0, 100, (4, 20), generator=torch.Generator().manual_seed(0)),), {}),
    "GCN": lambda: (GCN(), (noise(30, 12), edges()), {}),
    "GAT": lambda: (GAT(), (noise(30, 12), edges()), {}),
    "NeRF": lambda: (NeRF(), (noise(64, 3), F.normalize(noise(64, 3))), {}),
    "policy gradient": lambda: (Policy(), (noise(32, 6), torch.arange(32) % 4, noise(32).abs()), {}),
    "VAE": lambda: (VAE(), (noise(16, 64),), {}),
    "contrast of twins": lambda: (Siamese(), (noise(8, 1, 28, 28), noise(8, 1, 28, 28).flip(0)), {}),
    "detector": lambda: (Detector(), (noise(2, 3, 32, 32), noise(4, 2).abs() + 0.5, (noise(2, 5, 8, 8) > 1).float()), {}),
}


def case(name: str) -> Case:
    return PROGRAMS[name]()
