"""Random programs that write: values, aliasing, strides and versions of all arguments and results against plain execution."""
import linecache

import numpy as np
import pytest

import tenon
from tests.python.tensors.random_writes import program
from tests.python.tensors.writes import compare


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's words on resized and expanded outputs


def compiled_source(source, name, scope):
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), scope)
    return scope["fn"]


def outcome(fn, arguments):
    try:
        return fn(*arguments)
    except Exception as failure:
        return type(failure).__name__, str(failure)


def run(kind, seed, same, scope):
    source, arguments = program(kind, seed)
    fn = compiled_source(source, f"{kind} {seed}", scope)
    made = [[eval(text, scope) for text in arguments] for _ in range(3)]
    tenon.reset()
    ours, forward = tenon.compile(fn), tenon.compile(fn, backend=lambda graph, inputs: graph.forward)
    for call in range(2):
        want = outcome(fn, made[0])
        for way, given in ((ours, made[1]), (forward, made[2])):
            try:
                compare(same, outcome(way, given), want, given, made[0])
            except AssertionError as difference:
                raise AssertionError(f"seed {seed}, call {call}, {'native' if way is ours else 'forward'}, arguments {arguments}:\n{source}\n{difference}") from None
    return tenon.stats()["eager_fallbacks"] == 0


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_torch_programs(check, first):
    torch = pytest.importorskip("torch")
    whole = [run("torch", seed, check.same, {"torch": torch}) for seed in range(first, first + 40)]
    assert sum(whole) >= 10


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_numpy_programs(check, first):
    whole = [run("numpy", seed, check.same, {"np": np}) for seed in range(first, first + 40)]
    assert sum(whole) >= 10
