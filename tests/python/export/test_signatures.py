"""Signatures that somebody else has written: each is refused with the place, or is as good as one of ours."""
from __future__ import annotations

import copy
import dataclasses
import json
import random
from typing import Any

import numpy as np
import pytest

import tenon
from tenon import _signature, _tree

CALLS: list[str] = []


@dataclasses.dataclass
class Plain:
    left: Any
    right: Any = 2


@dataclasses.dataclass
class Active:
    value: Any

    def __post_init__(self):
        CALLS.append("made")


def _function(x, options, *, scale):
    a, b = options["pair"]
    return {"sum": x + a, 7: (b * scale, [None, 2.5, "two", float("inf"), 1j, b"ab", slice(1, None)])}, Plain(x - 1)


@pytest.fixture
def program():
    x = np.arange(6.0)
    return tenon.export(_function, (x, {"pair": (x + 1, x + 2)}), {"scale": 3.0})


@pytest.fixture
def load(program, tmp_path):
    """Loads the program with another signature."""

    def loaded(signature: Any):
        path = tmp_path / "forged.tnx"
        program._graph.save(signature if isinstance(signature, str) else json.dumps(signature), path)
        return tenon.load(path)

    return loaded


def call(program):
    x = np.arange(6.0)
    return program(x, {"pair": (x + 1, x + 2)}, scale=3.0)


def places(tree: Any, path: tuple = ()):
    """All parts of a signature, by their path."""
    yield path
    for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from places(part, (*path, key))


def at(tree: Any, path: tuple) -> Any:
    for key in path:
        tree = tree[key]
    return tree


STRANGE = [None, True, -1, 0, 1, 2**70, 1.5, "", "x", "torch", [], [1], {}, {"input": 0}, {"input": 99}, {"input": -1}, {"output": 0}, {"output": True},
           {"tuple": 3}, {"dict": [[{"list": []}, {"value": 1}]]}, {"dict": [[1]]}, {"value": []}, {"float": "x"}, {"bytes": "zz"}, {"complex": ["1"]}, {"slice": []},
           {"slice": [{"value": 1}, {"list": []}, {"value": 2}]}, {"dtype": "load"}, {"device": "nowhere"}, {"size": [-1]}, {"unknown": 1}, {"value": 1, "float": "1"},
           {"named_tuple": {"module": "os", "name": "system", "fields": ["a b"], "items": [{"value": 1}]}},
           {"named_tuple": {"module": "os", "name": "P", "fields": ["a"], "items": []}},
           {"dataclass": {"module": "subprocess", "name": "Popen", "fields": {"args": {"value": "true"}}}}, {"dataclass": {"module": 1, "name": "x", "fields": {}}}]


def mutant(signature: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A signature that is wrong in one to three places, most often."""
    made = copy.deepcopy(signature)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice(list(places(made)))
        if not path:
            continue
        parent = at(made, path[:-1])
        way = rng.randrange(5)
        if way == 0:
            del parent[path[-1]]
        elif way == 1 and isinstance(parent, dict):
            parent[rng.choice(["input", "output", "tuple", "value", "dict", "x"])] = parent.pop(path[-1])
        elif way == 2:
            parent[path[-1]] = copy.deepcopy(at(made, rng.choice(list(places(made)))))
        else:
            parent[path[-1]] = copy.deepcopy(rng.choice(STRANGE))
    return made


class Graph:
    """What the check asks of a graph."""

    def __init__(self, graph, signature: str):
        self.inputs, self.result_count, self.updates, self.signature = graph.inputs, graph.result_count, graph.updates, signature


def attack(graph, signature: dict[str, Any], rng: random.Random) -> bool:
    """One mutant: refused with words, or used like a signature of ours. Whether it was accepted."""
    text = json.dumps(mutant(signature, rng))
    if rng.randrange(8) == 0:
        cut = rng.randrange(len(text))
        text = text[:cut] + rng.choice(["", "1", "[", "{}", '"', "e999", "\\ud800", "null"]) + text[cut + rng.randrange(4):]
    try:
        read = _signature.read(Graph(graph, text), "f.tnx")
    except tenon.Error as refusal:
        assert "f.tnx" in str(refusal), text
        return False
    outputs = [np.zeros(1)] * len(read["outputs"])
    inputs = [np.zeros(1)] * len(read["inputs"])
    try:
        for tree in [*read["arguments"], *read["keywords"].values()]:
            _tree.match(tree, rng.choice(inputs + [None, (1, 2), {"a": 1}]), "argument", lambda *_: None)
    except tenon.Error:
        pass
    try:
        _tree.decode(read["results"], lambda leaf: inputs[leaf["input"]] if "input" in leaf else outputs[leaf["output"]], ())
    except tenon.Error:
        pass
    return True


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda s: s["inputs"].pop(), r"inputs: 2 for a graph of 3"),
        (lambda s: s["outputs"].append(s["outputs"][0]), r"outputs: 4 for a graph of 3"),
        (lambda s: s["outputs"][1].update(kind="tensor"), r"outputs\[1\].kind: 'tensor' is none of"),
        (lambda s: s["outputs"][0].update(kind=3), r"outputs\[0\].kind: 3 is not a string"),
        (lambda s: s["outputs"].__setitem__(0, None), r"outputs\[0\]: None is not an object"),
        (lambda s: s.pop("results"), r"results: missing"),
        (lambda s: s.update(results={"output": 7}), r"results.output: 7 is none of the 3"),
        (lambda s: s.update(results={"tuple": [{"output": 0}, {"list": 4}]}), r"results.tuple\[1\].list: 4 is not a list"),
        (lambda s: s.update(updates=[0]), r"updates: the graph writes to the inputs \[\], not \[0\]"),
        (lambda s: s["arguments"].pop(0), r"arguments: input 0 is in none of them"),
        (lambda s: s.update(parameters=[1]), r"parameters\[0\]: 1 is not a string"),
        (lambda s: s.update(name=None), r"name: None is not a string"),
        (lambda s: s.update(format=2), r"format 2"),
        (lambda s: s.update(format=True), r"format True"),
        (lambda s: s.clear(), r"format None"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(program, load, change, words):
    signature = copy.deepcopy(program._signature)
    change(signature)
    with pytest.raises(tenon.Error, match=words):
        load(signature)


@pytest.mark.parametrize("text", ['{"format": 1' + '0' * 5000 + '}', '{"a": ' + "[" * 100000 + "]" * 100000 + "}", '{"format": 1, "name": "' + "\\ud800" + '"}'])
def test_texts_without_end_are_refused(load, text):
    with pytest.raises(tenon.Error):
        load(text)


def test_a_key_that_stands_twice_is_refused(program, load):
    with pytest.raises(tenon.Error, match="has the key 'kind' twice"):
        load(json.dumps(program._signature).replace('"kind"', '"kind": 7, "kind"', 1))


def test_a_sound_signature_is_read(program, load):
    got, want = call(load(program._signature)), _function(np.arange(6.0), {"pair": (np.arange(6.0) + 1, np.arange(6.0) + 2)}, scale=3.0)
    np.testing.assert_array_equal(got[0]["sum"], want[0]["sum"])
    np.testing.assert_array_equal(got[1].left, want[1].left)
    assert type(got[1]) is Plain and got[0][7][1] == want[0][7][1]


def test_no_code_is_run(program, load, tmp_path, monkeypatch):
    """Neither by reading nor by calling: classes that do something when they are made are named by whoever trusts the file."""
    for module, name, fields in [("subprocess", "Popen", {"args": {"value": "touch " + str(tmp_path / "ran")}}), (__name__, "CALLS", {}), ("os", "system", {})]:
        signature = copy.deepcopy(program._signature)
        signature["results"] = {"dataclass": {"module": module, "name": name, "fields": fields}}
        with pytest.raises(tenon.Error, match="import that module first"):
            call(load(signature))
    signature = copy.deepcopy(program._signature)
    signature["results"] = {"dataclass": {"module": __name__, "name": "Active", "fields": {"value": {"output": 0}}}}
    with pytest.raises(tenon.Error, match=r"runs code of its own when it is made: .*classes=\[Active\]"):
        call(load(signature))
    signature["results"]["dataclass"]["fields"] = {"other": {"output": 0}}
    with pytest.raises(tenon.Error, match="that class has others"):
        call(load(signature))
    assert CALLS == [] and not (tmp_path / "ran").exists()
    signature["results"]["dataclass"]["fields"] = {"value": {"output": 0}}
    load(signature)
    assert isinstance(call(tenon.load(tmp_path / "forged.tnx", classes=[Active])), Active) and CALLS == ["made"]


def test_mutated_signatures(program):
    """A slice of the sweep: `python tests/python/export/test_signatures.py COUNT SEED` runs more."""
    rng = random.Random(1)
    accepted = sum(attack(program._graph, program._signature, rng) for _ in range(3000))
    assert 0 < accepted < 3000


if __name__ == "__main__":
    import sys

    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    x = np.arange(6.0)
    exported = tenon.export(_function, (x, {"pair": (x + 1, x + 2)}), {"scale": 3.0})
    rng = random.Random(seed)
    print(f"{sum(attack(exported._graph, exported._signature, rng) for _ in range(count))} of {count} signatures accepted, the others refused with a place (seed {seed})")
