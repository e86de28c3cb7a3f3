"""Which sizes of an exported program may differ from call to call: the argument ``dynamic_shapes`` of ``tenon.export``."""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tenon import _tree
from tenon._errors import ConfigError, Error

Varying = list[tuple[str, int]]  # the path of a tensor ("x[0]") and an axis


def varying_sizes(wanted: Mapping[str, Any] | Sequence[Any] | None, args: tuple, kwargs: dict[str, Any], parameters: list[str]) -> Varying:
    """The axes that are wanted. Raises ConfigError for what is none of the arguments."""
    if wanted is None:
        return []
    values = {**{parameters[i] if i < len(parameters) else f"arg{i}": value for i, value in enumerate(args)}, **kwargs}
    if not isinstance(wanted, Mapping):
        if not isinstance(wanted, Sequence) or len(wanted) > len(values):
            raise ConfigError(f"dynamic_shapes must be a dict by parameter or a sequence of at most {len(values)} entries, got {wanted!r}")
        wanted = dict(zip(values, wanted))
    for name in wanted:
        if name not in values:
            raise ConfigError(f"dynamic_shapes names {name!r}; the arguments are {', '.join(values) or 'none'}")
    return [axis for name, shapes in wanted.items() for axis in _axes(shapes, values[name], name)]


def _axes(wanted: Any, value: Any, path: str) -> Iterator[tuple[str, int]]:
    if wanted is None:
        return
    if _tree.is_tensor(value):
        entries = wanted.items() if isinstance(wanted, Mapping) else enumerate(wanted)
        for axis, name in entries:
            if not isinstance(axis, int) or not -value.ndim <= axis < value.ndim:
                raise ConfigError(f"dynamic_shapes: {path} has {value.ndim} dimensions, and none is {axis!r}")
            axis %= value.ndim
            if name is None:
                continue
            if value.shape[axis] < 2:
                raise ConfigError(f"dynamic_shapes: {path} must be given with a size of at least 2 in dimension {axis}, as 0 and 1 mean something of their own")
            yield path, axis
        return
    if not isinstance(value, (list, tuple, dict)) or not isinstance(wanted, (Mapping, Sequence)):
        raise ConfigError(f"dynamic_shapes: {path} is {type(value).__name__}, and has no sizes")
    for key, entry in wanted.items() if isinstance(wanted, Mapping) else enumerate(wanted):
        try:
            item = value[key]
        except LookupError:
            raise ConfigError(f"dynamic_shapes: {path} has no {key!r}") from None
        yield from _axes(entry, item, f"{path}[{key!r}]")


def require_varying(varying: Varying, found: dict[str, Any], arguments: Any) -> None:
    """Raises Error where the program holds for some sizes only, and its graph does not say so: an input's type has ranges and equal sizes."""
    types = dict(zip(arguments.paths, (text for _, text in found["graph"].inputs)))
    for path, axis in varying:
        if (extent := _extent(types[path], axis)).isdigit():
            raise Error(f"{path}: dimension {axis} cannot vary, because the program needs it to be {extent}")
    for line in found["guards"] if varying else ():
        if (equal := _EQUAL.fullmatch(line)) and all(path in types for path in equal.group(1, 3)):
            one, other = (_extent(types[equal[at]], int(equal[at + 1])) for at in (1, 3))
            if one == other:
                continue
        if _SIZE.search(line) and not _RANGE.fullmatch(line) and " is " not in line:
            raise Error(f"the program does not hold for all sizes: it needs {line}")


_SIZE = re.compile(r"\.(shape\[|stride\()")
_RANGE = re.compile(r"2 <= .*\.shape\[\d+\]")
_EQUAL = re.compile(r"(.*)\.shape\[(\d+)\] == (.*)\.shape\[(\d+)\]")


def _extent(type_text: str, axis: int) -> str:
    """An extent of a type in Tenon's text form: ``s0`` of ``f32[s0, 8]``."""
    return type_text[type_text.index("[") + 1 : type_text.index("]")].split(",")[axis].strip()
