"""Backends by the names under which torch.compile knows them; loaded when the first graph needs one."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tenon._errors import ConfigError

_OURS = "tenon"  # the way from torch.compile to here


def names() -> list[str]:
    """The names in torch's registry, those of other packages included; none where the program does not use torch."""
    if "torch" not in sys.modules:
        return []
    from torch._dynamo.backends.registry import list_backends

    return [name for name in list_backends(exclude_tags=()) if name != _OURS]


class TorchBackend:
    """A backend of torch's registry, called as torch.compile calls it: with an FX module and example inputs, once for each set of sizes."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.__name__ = name
        self._options = options
        self._load: Callable | None = None

    def __call__(self, module: Any, example_inputs: list) -> Callable:
        if self._load is None:
            from torch._dynamo.backends.registry import lookup_backend

            self._load = lookup_backend(self.__name__)
        given = {"config_patches": self._options} if self._options else {}
        return self._load(module, example_inputs, **given)


def backend_named(name: str, options: dict[str, Any]) -> TorchBackend | None:
    """The backend of torch's registry with this name, or None. `options`: torch's own, which only its compiler ``inductor`` takes."""
    if name == _OURS:
        raise ConfigError("backend='tenon' is the name by which torch.compile finds Tenon; leave it out here")
    return TorchBackend(name, options if name == "inductor" else {}) if name in names() else None


def is_option_of_inductor(name: object) -> bool:
    """Whether torch's own compiler has an option of this name."""
    if "torch" not in sys.modules or not isinstance(name, str):
        return False
    import torch._inductor.config as config

    return name.replace("-", "_") in config.get_config_copy()
