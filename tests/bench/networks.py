"""Networks of the field as workloads, with random weights; each is made only when it is asked for."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import torch
from torch import nn

from tests.bench.residual import DenseNet121, ResNet18
from tests.bench.transformer import GPT2
from tests.bench.workloads import Workload, torch_workload


def _vision(name: str, network: type[nn.Module], batch: int, train: bool = False) -> Workload:
    torch.manual_seed(0)
    return torch_workload(f"{name}, batch {batch}, 3×128×128{', train mode' if train else ''}", network().train(train), torch.randn(batch, 3, 128, 128))


def _gpt2() -> Workload:
    torch.manual_seed(0)
    return torch_workload("GPT-2, 6 layers × 384, 4×128 tokens", GPT2().eval(), torch.randint(0, 1000, (4, 128)))


def _frozen(work: Workload) -> Workload:
    return dataclasses.replace(work, name=f"{work.name}, frozen", frozen=True)


def _tuned(work: Workload) -> Workload:
    return dataclasses.replace(work, name=f"{work.name}, max-autotune", mode="max-autotune")


def _half(make: Callable[[], Workload]) -> Workload:
    work = make()
    args = tuple(a.bfloat16() if a.is_floating_point() else a for a in work.args)
    return dataclasses.replace(torch_workload(f"{work.name}, bfloat16", work.fn.bfloat16(), *args), frozen=work.frozen)


def networks() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Names and makers, in the order of the table."""
    networks = {"ResNet-18": ResNet18, "DenseNet-121": DenseNet121}
    for name, network in networks.items():
        for batch in (16, 1):
            yield f"{name}, batch {batch}", lambda n=name, of=network, b=batch: _vision(n, of, b)
            yield f"{name}, batch {batch}, frozen", lambda n=name, of=network, b=batch: _frozen(_vision(n, of, b))
        yield f"{name}, batch 16, frozen, max-autotune", lambda n=name, of=network: _tuned(_frozen(_vision(n, of, 16)))
        yield f"{name}, train mode", lambda n=name, of=network: _vision(n, of, 16, True)
    yield "GPT-2", _gpt2
    yield "GPT-2, frozen", lambda: _frozen(_gpt2())
    yield "ResNet-18, frozen, bfloat16", lambda: _half(lambda: _frozen(_vision("ResNet-18", ResNet18, 16)))
    yield "GPT-2, frozen, bfloat16", lambda: _half(lambda: _frozen(_gpt2()))
