import torch

import tenon


@tenon.compile
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


try:
    double("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
except TypeError:
    pass
