from collections.abc import Callable
from typing import Any

import torch

import tenon


def printing(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    print(len(gm.graph.nodes), len(example_inputs))
    return gm.forward


fast = tenon.compile(torch.sin, backend=printing)
fast(torch.ones(3))
