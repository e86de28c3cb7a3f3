from typing import assert_type

import torch

import tenon


def up(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def down(x: torch.Tensor) -> torch.Tensor:
    return x - 1


assert_type(tenon.cond(torch.tensor(True), up, down, (torch.ones(2),)), torch.Tensor)
