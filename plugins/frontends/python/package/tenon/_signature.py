"""The signature of an exported file, checked as a schema: whoever wrote the file, nothing of it is believed before."""
from __future__ import annotations

import json
import keyword
from collections.abc import Callable, Mapping
from typing import Any

from tenon import _tenon
from tenon._errors import Error
from tenon._tree import Tree

KINDS = {"torch": "a torch.Tensor", "array": "a numpy.ndarray", "scalar": "a NumPy scalar"}

_DEEPEST = 100  # containers in containers


def read(graph: _tenon.ExportedGraph, path: str) -> dict[str, Any]:
    """The signature of a graph that was read from `path`.

    Raises
    ------
    Error
        If it is none, or does not fit the graph: the message names the place.
    """
    try:
        signature = json.loads(graph.signature, object_pairs_hook=_object)
        if signature.get("format") != 1 or type(signature["format"]) is not int:
            raise Error(f"{path} was not exported by tenon.export of this version: its signature has format {signature.get('format')!r}")
        _check(signature, graph)
    except _Wrong as wrong:
        raise Error(f"{path}: the section 'signature': {wrong}") from None
    except (ValueError, RecursionError) as wrong:  # numbers without end, lists without end
        raise Error(f"{path}: the section 'signature' cannot be read: {wrong}") from None
    return signature


class _Wrong(Exception):
    """What is wrong, and where."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ: of two that are equal readers take one or the other."""
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _Wrong(f"an object has the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return made


def _check(signature: Mapping[str, Any], graph: _tenon.ExportedGraph) -> None:
    _part(signature, "name", str)
    _strings(_part(signature, "parameters", list), "parameters")
    _strings(_part(signature, "assumptions", list), "assumptions")
    inputs, outputs = _part(signature, "inputs", list), _part(signature, "outputs", list)
    _require(len(inputs) == len(graph.inputs), "inputs", f"{len(inputs)} for a graph of {len(graph.inputs)}")
    _require(len(outputs) == graph.result_count, "outputs", f"{len(outputs)} for a graph of {graph.result_count} results")
    for name, tensors in (("inputs", inputs), ("outputs", outputs)):
        for i, one in enumerate(tensors):
            _require(isinstance(one, dict), f"{name}[{i}]", _is(one, "an object"))
            _part(one, "name", str, f"{name}[{i}].")
            kind = _part(one, "kind", str, f"{name}[{i}].")
            _require(kind in KINDS, f"{name}[{i}].kind", f"{kind!r} is none of {', '.join(KINDS)}")
    updates = _part(signature, "updates", list)
    for i, index in enumerate(updates):
        _require(_is_index(index, len(inputs)), f"updates[{i}]", f"{index!r} is no input")
    _require(sorted(updates) == sorted(graph.updates), "updates", f"the graph writes to the inputs {graph.updates}, not {updates}")
    taken: set[int] = set()
    for i, tree in enumerate(_part(signature, "arguments", list)):
        _check_tree(tree, f"arguments[{i}]", {"input": len(inputs)}, taken)
    for name, tree in _part(signature, "keywords", dict).items():
        _check_tree(tree, f"keywords[{name!r}]", {"input": len(inputs)}, taken)
    missing = sorted(set(range(len(inputs))) - taken)
    _require(not missing, "arguments", f"input {missing[0] if missing else ''} is in none of them")
    _require("results" in signature, "results", "missing")
    _check_tree(signature["results"], "results", {"input": len(inputs), "output": len(outputs)}, set())


def _check_tree(tree: Any, place: str, leaves: Mapping[str, int], taken: set[int], depth: int = 0) -> None:
    """A tree as _tree.encode makes them. `leaves`: how many there are of each kind; `taken` gets the numbers of inputs."""
    _require(isinstance(tree, dict) and len(tree) == 1, place, _is(tree, "an object with one member"))
    _require(depth < _DEEPEST, place, "nested too deep")
    ((kind, content),) = tree.items()
    place = f"{place}.{kind}"
    if kind in leaves:
        _require(_is_index(content, leaves[kind]), place, f"{content!r} is none of the {leaves[kind]}")
        if kind == "input":
            taken.add(content)
    elif kind in _CONSTANTS:
        _require(_holds(_CONSTANTS[kind], content), place, f"{_shown(content)} is no such value")
    else:
        _require(kind in _CONTAINERS, place, "no kind of value")
        for name, part in _CONTAINERS[kind](content, place):
            _check_tree(part, name, leaves, taken, depth + 1)


def _items(content: Any, place: str) -> list[tuple[str, Any]]:
    _require(isinstance(content, list), place, _is(content, "a list"))
    return [(f"{place}[{i}]", part) for i, part in enumerate(content)]


def _pairs(content: Any, place: str) -> list[tuple[str, Any]]:
    for name, pair in _items(content, place):
        _require(isinstance(pair, list) and len(pair) == 2, name, _is(pair, "a key and a value"))
        _require(_is_hashable(pair[0]), f"{name}[0]", "a dict cannot have such a key")
    return [(f"{place}[{i}][{k}]", pair[k]) for i, pair in enumerate(content) for k in (0, 1)]


def _class(content: Any, place: str) -> None:
    _require(isinstance(content, dict), place, _is(content, "an object"))
    _part(content, "module", str, f"{place}.")
    name = _part(content, "name", str, f"{place}.")
    _require(_is_name(name.rpartition(".")[2]), f"{place}.name", f"{name!r} is no name of a class")


def _named_tuple(content: Any, place: str) -> list[tuple[str, Any]]:
    _class(content, place)
    fields, items = _part(content, "fields", list, f"{place}."), _part(content, "items", list, f"{place}.")
    _strings(fields, f"{place}.fields")
    sound = all(_is_name(f) and not f.startswith("_") for f in fields) and len(set(fields)) == len(fields) == len(items)
    _require(sound, f"{place}.fields", "a field needs a name of its own, and one item")
    return _items(items, f"{place}.items")


def _dataclass(content: Any, place: str) -> list[tuple[str, Any]]:
    _class(content, place)
    return [(f"{place}.fields[{name!r}]", part) for name, part in _part(content, "fields", dict, f"{place}.").items()]


_CONTAINERS: dict[str, Callable[[Any, str], list[tuple[str, Any]]]] = {
    "tuple": _items, "list": _items, "dict": _pairs, "ordered_dict": _pairs, "named_tuple": _named_tuple, "dataclass": _dataclass,
}


def _is_slice(parts: list[Any]) -> bool:
    return len(parts) == 3 and all(isinstance(p, dict) and len(p) == 1 and _holds(_CONSTANTS.get(next(iter(p)), lambda _: False), next(iter(p.values()))) for p in parts)


#: What each kind of constant holds; what raises does not hold.
_CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "value": lambda v: v is None or isinstance(v, (bool, int, float, str)),
    "float": lambda v: isinstance(v, str) and [float(v)],
    "complex": lambda v: len(v) == 2 and all(isinstance(part, str) for part in v) and [float(part) for part in v],
    "bytes": lambda v: isinstance(v, str) and [bytes.fromhex(v)],
    "slice": _is_slice,
    "size": lambda v: isinstance(v, list) and all(type(n) is int and 0 <= n < 2**63 for n in v),
    "dtype": lambda v: isinstance(v, str) and _is_name(v),
    "device": lambda v: isinstance(v, str) and v.replace(":", "").isalnum(),
}


def _is_hashable(tree: Any) -> bool:
    if not isinstance(tree, dict) or len(tree) != 1:
        return False
    ((kind, content),) = tree.items()
    if kind == "tuple":
        return isinstance(content, list) and all(map(_is_hashable, content))
    if kind == "named_tuple":
        return isinstance(content, dict) and isinstance(content.get("items"), list) and all(map(_is_hashable, content["items"]))
    return kind in _CONSTANTS and kind != "slice" or kind == "dataclass"


def _holds(question: Callable[[Any], Any], content: Any) -> bool:
    try:
        return bool(question(content))
    except (TypeError, ValueError, OverflowError):
        return False


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _is_index(value: Any, count: int) -> bool:
    return type(value) is int and 0 <= value < count


def _strings(items: list[Any], place: str) -> None:
    for i, item in enumerate(items):
        _require(isinstance(item, str), f"{place}[{i}]", _is(item, "a string"))


_KINDS: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}


def _part(whole: Mapping[str, Any], name: str, kind: type, of: str = "") -> Any:
    _require(name in whole, of + name, "missing")
    _require(isinstance(whole[name], kind), of + name, _is(whole[name], _KINDS[kind]))
    return whole[name]


def _is(value: Any, wanted: str) -> str:
    return f"{_shown(value)} is not {wanted}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:56]} ..."


def _require(holds: bool, place: str, words: str) -> None:
    if not holds:
        raise _Wrong(f"{place}: {words}")
