"""Networks of the field as workloads, with random weights; each is made only when it is asked for."""
from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import nn

from tests.bench.residual import DenseNet121, ResNet18
from tests.bench.workloads import Workload, torch_workload


def _vision(name: str, network: type[nn.Module], batch: int, train: bool = False) -> Workload:
    torch.manual_seed(0)
    return torch_workload(f"{name}, batch {batch}, 3×128×128{', train mode' if train else ''}", network().train(train), torch.randn(batch, 3, 128, 128))


def _gpt2() -> Workload:
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=6, n_embd=384, n_head=6, vocab_size=1000, use_cache=False)
    net = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.randint(0, 1000, (4, 128))
    return torch_workload("GPT-2, 6 layers × 384, 4×128 tokens", _Logits(net).eval(), tokens)


class _Logits(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, tokens):
        return self.net(tokens).logits


def networks() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Names and makers, in the order of the table."""
    yield "ResNet-18, batch 16", lambda: _vision("ResNet-18", ResNet18, 16)
    yield "ResNet-18, batch 1", lambda: _vision("ResNet-18", ResNet18, 1)
    yield "ResNet-18, train mode", lambda: _vision("ResNet-18", ResNet18, 16, True)
    yield "DenseNet-121, batch 16", lambda: _vision("DenseNet-121", DenseNet121, 16)
    yield "DenseNet-121, train mode", lambda: _vision("DenseNet-121", DenseNet121, 16, True)
    yield "GPT-2", _gpt2
