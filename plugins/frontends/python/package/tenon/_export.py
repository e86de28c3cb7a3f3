"""Whole graphs away from the program that made them: ``tenon.export``, ``ExportedProgram.save``, ``tenon.load``."""
from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenon import _signature, _tenon, _traced, _tree
from tenon._compile import uncompiled
from tenon._dynamic_shapes import require_varying, varying_sizes
from tenon._errors import ConfigError, Error


_LONGEST_LINE = 400  # of a printed graph


class ExportedProgram:
    """A whole graph that needs nothing of the program it was exported from. Made by :func:`export` and :func:`load`.

    Calling it takes what the exported function took and gives what it gave; what does not fit what it was exported with raises
    :class:`Error`. Results never share memory with arguments. It has no gradients.
    """

    def __init__(self, graph: _tenon.ExportedGraph, signature: dict[str, Any], backends: Sequence[str] = (), classes: Sequence[type] | None = None) -> None:
        self._graph = graph
        self._signature = signature
        self._backends = tuple(backends)
        self._classes = classes
        self._lock = threading.Lock()
        self._compiled = False

    @property
    def name(self) -> str:
        """The function or module that was exported."""
        return self._signature["name"]

    @property
    def input_names(self) -> list[str]:
        """The graph's inputs: the tensors among the arguments, in order."""
        return [one["name"] for one in self._signature["inputs"]]

    @property
    def output_names(self) -> list[str]:
        """The graph's results: the tensors among what the function gives, in order."""
        return [one["name"] for one in self._signature["outputs"]]

    @property
    def assumptions(self) -> list[str]:
        """What was read of Python while exporting and is frozen in the program, in words."""
        return list(self._signature["assumptions"])

    def tir(self) -> str:
        """The graph in Tenon's text form."""
        return self._graph.text()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program to a file, by custom ``name.tnx``, which :func:`load` and ``tenon run name.tnx`` read.

        Raises
        ------
        Error
            If the file cannot be written. What was there before is then still there.
        """
        self._graph.save(json.dumps(self._signature), path)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        inputs = self._take(args, kwargs)
        with self._lock:
            if not self._compiled:
                self._graph.compile(self._backends)
                self._compiled = True
        outputs = self._graph.run(inputs, [one["kind"] for one in self._signature["outputs"]])
        for index in self._signature["updates"]:
            if self._signature["inputs"][index]["kind"] == "torch":
                sys.modules["torch"].autograd.graph.increment_version(inputs[index])
        return _tree.decode(self._signature["results"], lambda leaf: inputs[leaf["input"]] if "input" in leaf else outputs[leaf["output"]], self._classes)

    def __str__(self) -> str:
        """The graph in Tenon's text form, with what is long of its constants left out."""
        return "\n".join(line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in self.tir().splitlines())

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {type_text}" for name, type_text in self._graph.inputs)
        return f"<tenon.ExportedProgram {self.name}({inputs}) -> {', '.join(self.output_names)}>"

    def _take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The graph's inputs from the arguments of a call, checked."""
        signature = self._signature
        inputs: list[Any] = [None] * len(signature["inputs"])
        taken: dict[int, str] = {}

        def take(index: int, value: Any, path: str) -> None:
            kind = signature["inputs"][index]["kind"]
            if _kind_of(value) != kind:
                raise Error(f"{path} is {type(value).__name__}; the program was exported with {_signature.KINDS[kind]}")
            if index in taken and inputs[index] is not value:
                raise Error(f"{path} and {taken[index]} were one tensor when the program was exported, and are two")
            if kind == "torch" and value.requires_grad and sys.modules["torch"].is_grad_enabled():
                raise Error(f"{path} requires grad, and an exported program has no gradients: call it under torch.no_grad()")
            inputs[index], taken[index] = value, path

        args, kwargs = self._in_exported_form(args, kwargs)
        if len(args) != len(signature["arguments"]):
            raise Error(f"{self.name} was exported with {len(signature['arguments'])} positional arguments; given: {len(args)}")
        for index, (tree, value) in enumerate(zip(signature["arguments"], args)):
            _tree.match(tree, value, f"argument {self._parameter(index)}", take)
        if sorted(kwargs) != sorted(signature["keywords"]):
            raise Error(f"{self.name} was exported with the keywords {sorted(signature['keywords']) or 'none'}; given: {sorted(kwargs) or 'none'}")
        for name, tree in signature["keywords"].items():
            _tree.match(tree, kwargs[name], f"argument {name}", take)
        return inputs

    def _parameter(self, index: int) -> str:
        names = self._signature["parameters"]
        return names[index] if index < len(names) else str(index)

    def _in_exported_form(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Positional arguments that were given by name, in their places."""
        names, rest = self._signature["parameters"], dict(kwargs)
        for index in range(len(args), len(self._signature["arguments"])):
            if index >= len(names) or names[index] not in rest:
                break
            args += (rest.pop(names[index]),)
        return args, rest


def export(
    fn: Callable[..., object],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: dict[str, Any] | Sequence[Any] | None = None,
    input_names: Sequence[str] | None = None,
) -> ExportedProgram:
    """Captures ``fn(*args, **kwargs)`` as one graph that can be saved and run elsewhere, also without Python.

    Parameters and whatever else the function reads travel as constants. Gradients do not: the function is captured under
    ``torch.no_grad()``, and is not run.

    Parameters
    ----------
    fn
        A function, a callable object or a ``torch.nn.Module``.
    args, kwargs
        What it is called with. Tensors and arrays become inputs, all else is fixed.
    dynamic_shapes
        Which sizes may differ from call to call, by parameter name or in the order of `args`: ``{"x": {0: "batch"}}``. Lists, tuples
        and dicts are followed into arguments that are such. Sizes of 0 and 1 are no instances of the others, and what the program
        assumes of a size beyond its range is an error.
    input_names
        Names for the tensors among the arguments, in order; without, they are named after the parameters.

    Raises
    ------
    GraphBreakError
        If the call cannot be captured as one graph, or runs what cannot travel; the message names the line.
    Error
        If an argument or the result has parts that a file cannot hold.
    """
    if not callable(fn):
        raise ConfigError(f"tenon.export takes a function, a callable object or a module, got {type(fn).__name__}")
    if not isinstance(args, tuple):
        raise ConfigError(f"args must be a tuple of arguments, got {type(args).__name__}: one argument x is written (x,)")
    plain, kwargs = uncompiled(fn), dict(kwargs or {})
    parameters = _parameters(plain)
    arguments = _Arguments(args, kwargs, parameters)
    arguments.rename(input_names)
    varying = varying_sizes(dynamic_shapes, args, kwargs, parameters)
    torch = sys.modules.get("torch")
    with torch.no_grad() if torch is not None else contextlib.nullcontext():
        found = _tenon.export_capture(plain, args, kwargs, arguments.tensors, arguments.names, [f"{path}.shape[{axis}]" for path, axis in varying])
    require_varying(varying, found, arguments)
    results = _Results(found, arguments)
    found["graph"].name_outputs(results.names)
    signature = {
        "format": 1,
        "name": getattr(fn, "__name__", type(fn).__name__),
        "parameters": parameters,
        "arguments": arguments.positional,
        "keywords": arguments.keywords,
        "inputs": [{"name": n, "kind": _kind_of(t)} for n, t in zip(arguments.names, arguments.tensors)],
        "outputs": [{"name": n, "kind": k} for n, k in zip(results.names, found["kinds"])],
        "results": results.tree,
        "updates": found["updates"],
        "assumptions": found["guards"],
    }
    return ExportedProgram(found["graph"], signature)


def load(path: str | os.PathLike[str], *, backend: str | Sequence[str] | None = None, classes: Sequence[type] = ()) -> ExportedProgram:
    """Reads what :meth:`ExportedProgram.save` wrote. The file may be anybody's: it is checked before anything of it is believed, and holds
    nothing that is run as code.

    Parameters
    ----------
    path
        The file.
    backend
        A name or names in order of preference; None: the configuration's.
    classes
        Dataclasses among the results that run code of their own when they are made (an ``__init__`` or ``__post_init__``). Others, and
        named tuples, need not be given.

    Raises
    ------
    Error
        If the file cannot be read, is damaged (the message names the section), or was written by another version.
    """
    graph = _tenon.load_exported(path)
    signature = _signature.read(graph, os.fsdecode(path))
    return ExportedProgram(graph, signature, (backend,) if isinstance(backend, str) else tuple(backend or ()), tuple(classes))


class _Arguments:
    """The trees of the arguments, and the tensors among them, each once."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], parameters: list[str]) -> None:
        self.tensors: list[Any] = []
        self.names: list[str] = []
        self.paths: list[str] = []
        self._numbers: dict[int, int] = {}
        names = [*parameters[: len(args)], *(f"arg{i}" for i in range(len(parameters), len(args)))]
        self.positional = [_tree.encode(value, name, self._leaf) for name, value in zip(names, args)]
        self.keywords = {name: _tree.encode(value, name, self._leaf) for name, value in kwargs.items()}

    def number(self, value: Any) -> int | None:
        """Which input an object is."""
        return self._numbers.get(id(value))

    def rename(self, names: Sequence[str] | None) -> None:
        """Takes over the user's names."""
        if names is None:
            return
        if len(names) != len(self.names) or len(set(names)) != len(names) or not all(isinstance(n, str) and _NAME.fullmatch(n) for n in names):
            raise ConfigError(f"input_names must be {len(self.names)} different names (letters, digits, _ and .), for {', '.join(self.names)}; given: {list(names)!r}")
        self.names = list(names)

    def _leaf(self, value: Any, path: str) -> _tree.Tree | None:
        if not _tree.is_tensor(value):
            return None
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.tensors)
            self.tensors.append(value)
            self.paths.append(path)
            self.names.append(_unique(_identifier(path), self.names))
        return {"input": self._numbers[id(value)]}


class _Results:
    """The tree of the result, and a name for each output."""

    def __init__(self, found: dict[str, Any], arguments: _Arguments) -> None:
        self._arguments = arguments
        self.names = [""] * len(found["kinds"])
        self.tree = _tree.encode(found["result"], "output", self._leaf)

    def _leaf(self, value: Any, path: str) -> _tree.Tree | None:
        if isinstance(value, _traced.ValueRef):
            index = int(value.name)
            self.names[index] = self.names[index] or _unique(_identifier(path), [*self._arguments.names, *self.names])
            return {"output": index}
        if not _tree.is_tensor(value):
            return None
        number = self._arguments.number(value)
        if number is None:
            raise Error(f"{path} is a tensor that is older than the call and no argument: an exported program can give copies only (use .clone())")
        return {"input": number}


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def _identifier(path: str) -> str:
    """A path as a name: ``x[0].y['k']`` becomes ``x.0.y.k``."""
    text = re.sub(r"[^A-Za-z0-9_]+", ".", path).strip(".")
    return text if _NAME.fullmatch(text) else f"input_{text}"


def _unique(name: str, taken: Sequence[str]) -> str:
    number, wish = 1, name
    while name in taken:
        name, number = f"{wish}_{number}", number + 1
    return name


def _kind_of(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "array"
    return "scalar" if isinstance(value, np.generic) else "torch" if _tree.is_tensor(value) else "other"


def _parameters(fn: Callable) -> list[str]:
    """The names of the positional parameters; none for what does not say."""
    torch = sys.modules.get("torch")
    target = fn.forward if torch is not None and isinstance(fn, torch.nn.Module) else fn
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
