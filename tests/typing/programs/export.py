import pathlib
import tempfile
from typing import assert_type

import torch

import tenon


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


program = tenon.export(double, (torch.ones(3),), input_names=["x"])
assert_type(program, tenon.ExportedProgram)
path = pathlib.Path(tempfile.mkdtemp()) / "double.tnx"
program.save(path)
assert_type(tenon.load(path), tenon.ExportedProgram)
