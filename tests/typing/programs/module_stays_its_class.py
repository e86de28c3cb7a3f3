from typing import assert_type

import torch

import tenon


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.linear(x)
        return result


net = tenon.compile(Net(), mode="max-autotune")
assert_type(net, Net)
assert_type(net.linear, torch.nn.Linear)
net(torch.ones(1, 3))
