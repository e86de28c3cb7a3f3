from typing import assert_type

import torch

import tenon


class Model:
    factor = 3.0

    @tenon.compile
    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


assert_type(Model().scaled(torch.ones(2)), torch.Tensor)
