from typing import assert_type

import torch

import tenon


@tenon.allow_in_graph
def noted(x: torch.Tensor) -> torch.Tensor:
    return x + 1


assert_type(noted(torch.ones(2)), torch.Tensor)
