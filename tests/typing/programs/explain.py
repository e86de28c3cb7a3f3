from typing import assert_type

import torch

import tenon


def double(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return x * by


report = tenon.explain(double)(torch.ones(3), by=3.0)
assert_type(report, tenon.Explanation)
assert_type(report.op_count, int)
assert_type(tenon.explain(double, torch.ones(3)), tenon.Explanation)
