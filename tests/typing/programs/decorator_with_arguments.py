from typing import assert_type

import torch

import tenon


@tenon.compile(fullgraph=True, dynamic=False, options={"recompile_limit": 4})
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by


assert_type(scaled(torch.ones(3), 2.0), torch.Tensor)
