from typing import assert_type

import torch

import tenon

net = tenon.compile(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh()))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


@tenon.compile
def step(x: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss: torch.Tensor = net(x).square().mean()
    loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
    optimizer.step()  # pyright: ignore[reportUnknownMemberType]
    return loss


assert_type(step(torch.ones(4, 3)), torch.Tensor)
