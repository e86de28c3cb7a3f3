"""Nested arguments and results as JSON: which containers, which constants, and where the tensors go. No pickle, no imports."""
from __future__ import annotations

import collections
import dataclasses
import math
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tenon._errors import Error

Tree = dict[str, Any]
Leaf = Callable[[Any, str], "Tree | None"]  # (object, path) -> its tree, or None for what is no leaf

_PLAIN = "None, bool, int, float, complex, str, bytes, slice, torch.dtype, torch.device; tuple, list, dict, OrderedDict, named tuples and dataclasses of those"


def encode(value: Any, path: str, leaf: Leaf) -> Tree:
    """The tree of a value; `leaf` answers for tensors. `path` names the value in errors: "argument x"."""
    found = leaf(value, path)
    if found is not None:
        return found
    fields = getattr(type(value), "_fields", None)
    if isinstance(value, tuple) and fields is not None:
        items = [encode(item, f"{path}.{name}", leaf) for name, item in zip(fields, value)]
        return {"named_tuple": {**_class_name(value), "fields": list(fields), "items": items}}
    if type(value) in (tuple, list):
        return {type(value).__name__: [encode(item, f"{path}[{i}]", leaf) for i, item in enumerate(value)]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: encode(getattr(value, f.name), f"{path}.{f.name}", leaf) for f in dataclasses.fields(value) if f.init}
        return {"dataclass": {**_class_name(value), "fields": parts}}
    if type(value) in (dict, collections.OrderedDict):
        kind = "dict" if type(value) is dict else "ordered_dict"
        return {kind: [[encode(k, f"a key of {path}", leaf), encode(v, f"{path}[{k!r}]", leaf)] for k, v in value.items()]}
    return _encode_constant(value, path)


def decode(tree: Tree, leaf: Callable[[Tree], Any], classes: Sequence[type] | None = None) -> Any:
    """The value of a tree; `leaf` gives the tensors. `classes`: those that may run code of their own when they are made; None: all."""
    ((kind, content),) = tree.items()
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(decode(item, leaf, classes) for item in content)
    if kind in ("dict", "ordered_dict"):
        try:
            return (dict if kind == "dict" else collections.OrderedDict)((decode(k, leaf, classes), decode(v, leaf, classes)) for k, v in content)
        except TypeError as wrong:
            raise Error(f"the program gives a dict with a key that cannot be one: {wrong}") from None
    if kind == "named_tuple":
        return tuple.__new__(_named_tuple_class(content), [decode(item, leaf, classes) for item in content["items"]])
    if kind == "dataclass":
        return _dataclass(content, classes)(**{name: decode(part, leaf, classes) for name, part in content["fields"].items()})
    if kind in ("input", "output"):
        return leaf(tree)
    return _decode_constant(kind, content)


def leaves(tree: Tree, kind: str = "input") -> Iterator[int]:
    """The numbers of the inputs (or outputs) in a tree, in order."""
    ((found, content),) = tree.items()
    if found == kind:
        yield content
    for child in _children(found, content):
        yield from leaves(child, kind)


def match(tree: Tree, value: Any, path: str, take: Callable[[int, Any, str], None]) -> None:
    """Checks that `value` has the tree's structure and constants; `take` gets each tensor. Raises Error that names the place."""
    ((kind, content),) = tree.items()
    if kind == "input":
        take(content, value, path)
        return
    given = encode(value, path, lambda v, _: {"input": -1} if is_tensor(v) else None)
    ((given_kind, given_content),) = given.items()
    children, wanted = _children(given_kind, given_content), _children(kind, content)
    if given_kind != kind or len(children) != len(wanted) or _names(kind, content) != _names(given_kind, given_content):
        raise Error(f"{path} is {_shown(value)}; the program was exported with {describe(tree)}")
    if not wanted and given != tree:
        raise Error(f"{path} is {_shown(value)}; the program was exported with {describe(tree)}")
    for place, part, child in zip(_places(kind, content, path), _parts(value, kind), wanted):
        match(child, part, place, take)


def describe(tree: Tree) -> str:
    """A tree in words, short."""
    ((kind, content),) = tree.items()
    if kind in ("input", "output"):
        return "a tensor"
    if kind in ("tuple", "list", "dict", "ordered_dict"):
        return f"a {kind.replace('ordered_dict', 'OrderedDict')} of {len(content)}"
    if kind in ("named_tuple", "dataclass"):
        return f"a {content['name']}"
    return repr(_decode_constant(kind, content))


def _children(kind: str, content: Any) -> list[Tree]:
    if kind in ("tuple", "list"):
        return content
    if kind in ("dict", "ordered_dict"):
        return [value for _, value in content]
    if kind == "named_tuple":
        return content["items"]
    return list(content["fields"].values()) if kind == "dataclass" else []


def _names(kind: str, content: Any) -> Any:
    if kind in ("dict", "ordered_dict"):
        return [key for key, _ in content]
    if kind == "named_tuple":
        return content["name"], content["fields"]
    return (content["name"], list(content["fields"])) if kind == "dataclass" else None


def _places(kind: str, content: Any, path: str) -> list[str]:
    if kind in ("dict", "ordered_dict"):
        return [f"{path}[{describe(key)}]" for key, _ in content]
    if kind in ("named_tuple", "dataclass"):
        return [f"{path}.{name}" for name in content["fields"]]
    return [f"{path}[{i}]" for i in range(len(content))] if kind in ("tuple", "list") else []


def _parts(value: Any, kind: str) -> list[Any]:
    if kind in ("dict", "ordered_dict"):
        return list(value.values())
    if kind == "dataclass":
        return [getattr(value, f.name) for f in dataclasses.fields(value) if f.init]
    return list(value) if kind in ("tuple", "list", "named_tuple") else []


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor, an array or a NumPy scalar."""
    numpy, torch = sys.modules["numpy"], sys.modules.get("torch")
    return isinstance(value, (numpy.ndarray, numpy.generic)) or (torch is not None and isinstance(value, torch.Tensor))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 and not is_tensor(value) else f"of type {type(value).__name__}"


def _class_name(value: Any) -> dict[str, str]:
    return {"module": type(value).__module__, "name": type(value).__qualname__}


def _loaded_class(content: dict[str, Any]) -> type | None:
    """The class where its module is loaded already: reading a file imports nothing, and asks no ``__getattr__``."""
    found: Any = sys.modules.get(content["module"])
    for name in content["name"].split("."):
        found = vars(found).get(name) if isinstance(found, (type, types.ModuleType)) else None
    return found if isinstance(found, type) else None


def _named_tuple_class(content: dict[str, Any]) -> type:
    found = _loaded_class(content)
    if found is not None and tuple in found.__mro__ and list(getattr(found, "_fields", ())) == content["fields"]:
        return found
    return collections.namedtuple(content["name"].rpartition(".")[2], content["fields"])


def _dataclass(content: dict[str, Any], classes: Sequence[type] | None) -> type:
    found, name = _loaded_class(content), f"{content['module']}.{content['name']}"
    if found is None or not dataclasses.is_dataclass(found):
        raise Error(f"the program takes or gives a {name}: import that module first")
    if {f.name for f in dataclasses.fields(found) if f.init} != set(content["fields"]):
        raise Error(f"the program gives a {name} with the fields {', '.join(content['fields'])}; that class has others")
    if classes is not None and found not in classes and not _only_takes_fields(found):
        raise Error(f"the program gives a {name}, which runs code of its own when it is made: if that is wanted, name it: tenon.load(path, classes=[{found.__name__}])")
    return found


def _only_takes_fields(dataclass: Any) -> bool:
    """Whether making one runs nothing but the ``__init__`` that the decorator has written."""
    written = getattr(getattr(dataclass.__init__, "__code__", None), "co_filename", "") == "<string>"
    made_up = any(f.default_factory is not dataclasses.MISSING for f in dataclasses.fields(dataclass) if not f.init)
    plain = type(dataclass) is type and dataclass.__new__ is object.__new__ and dataclass.__setattr__ is object.__setattr__
    frozen = type(dataclass) is type and dataclass.__new__ is object.__new__ and getattr(dataclass, "__dataclass_params__").frozen
    return written and (plain or frozen) and not made_up and not hasattr(dataclass, "__post_init__")


def _encode_constant(value: Any, path: str) -> Tree:
    if value is None or type(value) in (bool, int, str):
        return {"value": value}
    if type(value) is float:
        return {"value": value} if math.isfinite(value) else {"float": repr(value)}
    if type(value) is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    if type(value) is slice:
        return {"slice": [_encode_constant(part, path) for part in (value.start, value.stop, value.step)]}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Size):
        return {"size": [int(n) for n in value]}
    if torch is not None and isinstance(value, (torch.dtype, torch.device)):
        return {type(value).__name__: str(value).removeprefix("torch.")}
    raise Error(f"{path} is of type {type(value).__name__}, which an exported program cannot take or give; it can: tensors, arrays, {_PLAIN}")


def _decode_constant(kind: str, content: Any) -> Any:
    if kind == "value":
        return content
    if kind == "float":
        return float(content)
    if kind == "complex":
        return complex(*map(float, content))
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "slice":
        return slice(*(_decode_constant(*next(iter(part.items()))) for part in content))
    if kind in ("size", "dtype", "device"):
        return _decode_torch(kind, content)
    raise Error(f"the signature of the exported program has an unknown part {kind!r}: it was written by a newer Tenon")


def _decode_torch(kind: str, content: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is None:
        raise Error(f"the program takes or gives a torch {kind}: import torch first")
    if kind == "size":
        return torch.Size(content)
    try:
        found = torch.device(content) if kind == "device" else getattr(torch, content, None)
    except RuntimeError as wrong:
        raise Error(f"the program takes or gives the device {content!r}: {wrong}") from None
    if not isinstance(found, (torch.device, torch.dtype)):
        raise Error(f"the program takes or gives the dtype {content!r}, which this torch does not have")
    return found
