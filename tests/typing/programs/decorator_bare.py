from typing import assert_type

import torch

import tenon


@tenon.compile
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


assert_type(double(torch.ones(3)), torch.Tensor)
