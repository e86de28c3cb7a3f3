import os
import pathlib
import tempfile
from typing import assert_type

import torch

import tenon


def double(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return x * by


with tempfile.TemporaryDirectory() as folder:
    page = tenon.report(double, path=os.path.join(folder, "page.html"))(torch.ones(3), by=3.0)
    assert_type(page, tenon.Report)
    assert_type(page.path, str)
    assert_type(page.explanation, tenon.Explanation)
    assert_type(tenon.report(double, torch.ones(3), path=pathlib.Path(folder) / "page.html", runs=2), tenon.Report)
    assert_type([step.warm_microseconds for step in page.explanation.steps], list[float])
    assert_type([step.graph for step in page.explanation.steps], list[int | None])
