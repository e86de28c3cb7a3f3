"""``python -m tenon run|explain|report FILE.py:FUNCTION`` and ``python -m tenon doctor``: what the command ``tenon`` starts for Python programs."""
from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import pathlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import tenon
from tenon._compile import compiled_function, settings_like, uncompiled
from tenon._errors import did_you_mean
from tenon._report import DEFAULT_PATH, check_writable


LARGEST_SEED = 2**32 - 1


class UsageError(Exception):
    """The command line asks for something that is not there."""


def load(target: str) -> tuple[ModuleType, Callable]:
    """Imports FILE.py and gives the module and the function that FILE.py:FUNCTION names."""
    path, name = file_and_function(target)
    file = pathlib.Path(path)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no file of Python's: its name does not end in .py")
    try:
        compile(file.read_bytes(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{path} is no file of Python's: {error}") from None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    sys.path.insert(0, str(file.parent.resolve()))
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        known = [n for n, v in vars(module).items() if callable(v) and not inspect.isclass(v) and getattr(v, "__module__", None) == module.__name__]
        said = f"{path} names no function" if not name else f"{name} of {path} is no function but of type {type(found).__name__}" if hasattr(module, name) else f"{path} has no function {name!r}{did_you_mean(name, known)}"
        raise UsageError(f"{said}; it has: {', '.join(known) or 'none'}")
    return module, found


def file_and_function(target: str) -> tuple[str, str]:
    """The two parts of FILE.py:FUNCTION, of which the first is a file that is there. The second one is empty where it is not given."""
    path, colon, name = target.rpartition(":")
    if not colon or pathlib.Path(target).is_file():
        path, name = target, ""
    if not path:
        raise UsageError(f"{target}: no file stands before the colon; a target is written FILE.py:FUNCTION, for example model.py:{name or 'forward'}")
    file = pathlib.Path(path)
    if file.is_dir():
        raise UsageError(f"{path} is a folder; a target is written FILE.py:FUNCTION")
    if not file.is_file():
        near = [one.name for one in file.parent.glob("*.py")] if file.parent.is_dir() else []
        raise UsageError(f"there is no file {path}{did_you_mean(file.name, near)}; a target is written FILE.py:FUNCTION")
    return path, name


def arguments(module: ModuleType, fn: Callable, options: argparse.Namespace) -> dict[str, Any]:
    """The function's arguments by name: from NAME=file.npy (torch tensors where the module uses torch), whole numbers from NAME=NUMBER."""
    found: dict[str, Any] = {}
    parameters = inspect.signature(fn).parameters
    for item in options.size:
        name, _, number = item.partition("=")
        if name not in parameters or not number.lstrip("-").isdigit():
            raise UsageError(f"--size {item}: expected NAME=NUMBER with a name among {', '.join(parameters)}")
        found[name] = int(number)
    for item in options.input:
        name, separator, path = item.partition("=")
        if not separator or name not in parameters:
            raise UsageError(f"--input {item}: expected NAME=file.npy with a name among {', '.join(parameters)}")
        try:
            array = np.load(path)
        except (OSError, ValueError) as error:
            raise UsageError(f"--input {item}: {error}") from None
        found[name] = module.torch.from_numpy(array) if hasattr(module, "torch") else array
        if options.device:
            if not hasattr(module, "torch"):
                raise UsageError(f"--device {options.device}: arrays are the host's; {module.__file__} does not use torch")
            found[name] = found[name].to(options.device)
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in found and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if missing:
        raise UsageError(f"no --input (or --size) for {', '.join(missing)}")
    return found


def outputs(result: Any) -> list[np.ndarray]:
    """The tensors and numbers of a result as arrays, in order."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [array for value in result for array in outputs(value)]
    value = result.detach().cpu() if hasattr(result, "detach") else result
    return [] if value is None else [np.asarray(value)]


def seed_random_numbers(module: ModuleType, seed: int) -> None:
    """Makes the random numbers of NumPy, and of torch where the module uses it, those of a seed."""
    np.random.seed(seed)
    if hasattr(module, "torch"):
        module.torch.manual_seed(seed)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Compiles and runs the function, and writes what was asked for."""
    module, fn = load(options.target)
    plain = uncompiled(fn)
    seed_random_numbers(module, options.seed)
    settings = settings_like(fn, backend=options.backend.split(",") if options.backend else None)
    result = outputs(compiled_function(plain, settings)(**arguments(module, plain, options)))
    for index, item in enumerate(options.output):
        name, separator, path = item.partition("=")
        if not separator:
            raise UsageError(f"--output {item}: expected NAME=file.npy")
        position = int(name) if name.isdigit() else index
        if position >= len(result):
            raise UsageError(f"--output {item}: there are {len(result)} outputs")
        np.save(path, result[position])
    return {
        "outputs": [{"dtype": str(array.dtype), "shape": list(array.shape)} for array in result],
        "statistics": tenon.stats(),
    }


def explain(options: argparse.Namespace) -> dict[str, Any]:
    """Captures the function and reports."""
    module, fn = load(options.target)
    plain = uncompiled(fn)
    seed_random_numbers(module, options.seed)
    report = tenon.explain(fn)(**arguments(module, plain, options))
    if not options.json:
        print(report)
    return {
        "graph_count": report.graph_count,
        "graph_break_count": report.graph_break_count,
        "ops_per_graph": report.ops_per_graph,
        "break_reasons": [str(reason) for reason in report.break_reasons],
        "guards": report.guards,
        "compile_times": report.compile_times,
    }


def report(options: argparse.Namespace) -> dict[str, Any]:
    """Captures and runs the function, and writes the page that shows it."""
    path = check_writable(options.out)
    module, fn = load(options.target)
    plain = uncompiled(fn)
    seed_random_numbers(module, options.seed)
    written = tenon.report(fn, path=path, runs=options.runs)(**arguments(module, plain, options))
    if not options.json:
        print(written)
    return {"path": written.path, "graph_count": written.explanation.graph_count, "graph_break_count": written.explanation.graph_break_count}


def doctor(options: argparse.Namespace) -> dict[str, Any]:
    """Says what a bug report should."""
    found = tenon.doctor()
    if not options.json:
        print(found)
    return found


def seed_number(text: str) -> int:
    """What NumPy and torch both take as a seed."""
    if not text.isdecimal() or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {LARGEST_SEED}, not: {text}")
    return int(text)


def main() -> int:
    """Returns the exit status: 0, 1 (the work failed) or 2 (bad usage)."""
    parser = argparse.ArgumentParser(prog="tenon")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, action in (("run", run), ("explain", explain), ("report", report)):
        command = commands.add_parser(name)
        command.set_defaults(action=action)
        command.add_argument("target", metavar="FILE.py:FUNCTION")
        command.add_argument("--input", action="append", default=[], metavar="NAME=file.npy")
        command.add_argument("--size", action="append", default=[], metavar="NAME=NUMBER")
        command.add_argument("--seed", type=seed_number, default=0, metavar="NUMBER")
        command.add_argument("--device", default="", metavar="DEVICE")
        command.add_argument("--json", action="store_true")
        if name == "run":
            command.add_argument("--backend", default="")
            command.add_argument("--output", action="append", default=[], metavar="NAME=file.npy")
        if name == "report":
            command.add_argument("--out", default=DEFAULT_PATH, metavar="FILE.html")
            command.add_argument("--runs", type=int, default=2, metavar="NUMBER")
    command = commands.add_parser("doctor")
    command.set_defaults(action=doctor)
    command.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        answer = options.action(options)
    except (UsageError, tenon.ConfigError) as error:
        print(f"tenon: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        print(f"tenon: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    if options.json or options.command == "run":
        print(json.dumps(answer, indent=None if options.json else 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
