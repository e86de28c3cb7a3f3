"""One call of a function."""
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tests.array_api.operands import Operand


@dataclasses.dataclass(frozen=True)
class Sample:
    """Arguments of a call, with operands in place of arrays."""

    args: tuple = ()
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)

    def holds_nan(self) -> bool:
        return any(isinstance(a, Operand) and a.values.dtype.kind == "f" and bool(np.isnan(a.values).any()) for a in self.args)

    def __str__(self) -> str:
        return ", ".join([_told(a) for a in self.args] + [f"{key}={_told(value)}" for key, value in self.kwargs.items()])


def call(*args: Any, **kwargs: Any) -> Sample:
    """The call with these arguments."""
    return Sample(args, kwargs)


def _told(value: Any) -> str:
    if isinstance(value, Operand):
        layout = "" if value.layout == "plain" else " " + value.layout
        return f"{value.values.dtype}{list(value.values.shape)}{layout}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(_told(item) for item in value) + ")"
    return repr(value)
