"""`graph.code()` is Python that gives what the graph gives."""
import ast
import copy
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import tenon

torch = pytest.importorskip("torch")

sys.path.append(str(Path(__file__).parents[3]))
from tests.fuzz_tensors.program import Program  # noqa: E402


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


class Judge:
    """A backend that runs each graph as it is, and compares what the graph's code gives."""

    def __init__(self):
        self.codes = []

    def __call__(self, graph, example_inputs):
        graph = graph.tenon_graph
        code = graph.code()
        (function,) = ast.parse(code).body
        assert len(function.args.args) == len(example_inputs)
        assert all(" on cpu" in ast.literal_eval(parameter.annotation) for parameter in function.args.args)
        names = {}
        exec(code, names)
        self.codes.append(code)

        def run(*inputs):
            given = copy.deepcopy(inputs)
            torch.manual_seed(0)
            want = graph.forward(*inputs)
            torch.manual_seed(0)
            got = names[function.name](*given)
            assert len(got) == len(want)
            for one, other in zip(got, want):
                assert type(one) is type(other)
                same = torch.equal(one.nan_to_num(), other.nan_to_num()) if isinstance(one, torch.Tensor) else np.array_equal(one, other, equal_nan=True)
                assert same, code
            return want

        return run


def codes_of(program, *args):
    judge = Judge()
    tenon.compile(program, backend=judge)(*args)
    return judge.codes


def test_random_programs():
    codes = []
    for seed in range(100):
        program = Program(seed)
        inputs = program.inputs()
        try:
            program.run(copy.deepcopy(inputs))
        except Exception:  # no program then
            continue
        codes += codes_of(lambda *given: program.run(list(given)), *inputs)
        tenon.reset()
    assert len(codes) >= 100


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(36, 5)])

    def forward(self, input):
        for layer in self.layers:
            input = layer(input)
        return torch.softmax(input, -1).topk(2)


def test_networks_have_the_names_of_their_parameters():
    (code,) = codes_of(Block().eval(), torch.rand(2, 3, 8, 8))
    for name in ("input", "layers_0_weight", "layers_1_running_mean", "layers_4_bias"):
        assert any(parameter.arg.endswith(name) for parameter in ast.parse(code).body[0].args.args), code


def test_strides_devices_and_names():
    def program(input, scale):
        return (input * scale.to(torch.float64)).T

    (code,) = codes_of(program, torch.rand(3, 4).t(), torch.rand(4, 1))
    assert '__program(input: "f32[4, 3]{1, 4} on cpu", scale: "f32[4, 1] on cpu"):' in code


def test_writes_slices_constants_and_branches():
    table = torch.tensor([float("inf"), 1.0, float("nan"), -2.5])

    def program(x, i):
        x[1:, ::2] = 7
        x.T[0].add_(1)
        y = torch.where(x > 2, table, torch.tensor([[1, 2, 3, 4]], dtype=torch.int16).to(x.dtype))
        z = tenon.cond(y[0, 1] > 0, lambda a: a + 1, lambda a: a * 2, (x,))
        return y, z.max(0), x[i], x.view(-1).split([4, 8]), torch.ones(3, device="cpu"), x[None, ..., 0]

    assert codes_of(program, torch.rand(3, 4), torch.tensor([0, 2]))


def test_functions_of_numpy_on_arrays_and_scalars():
    constant = np.arange(3000, dtype=np.int16)

    def program(a):
        b = np.sin(a)[::-1]
        a[::2] *= np.float32(2)
        with np.errstate(all="ignore"):
            c = a.mean().astype(np.float64) / b[0, 0]
        return np.where(b > 0, b, a), a.sum(axis=1, dtype=np.float64), c, np.full((2,), np.inf), a.T.reshape(-1)[constant[:3]]

    assert codes_of(program, np.random.default_rng(0).random((4, 3)).astype(np.float32))


VARYING = {
    "parts": (lambda x, n, s: (x[:n] * s + n).sum() * x.shape[0], [(torch.rand(9), 4, 2.5), (torch.rand(12), 5, 0.5)]),
    "quotients": (lambda x, n: x[n // 2 :] * (n % 3) + x.shape[0] // 2, [(torch.rand(12), 5), (torch.rand(20), 7)]),
    "sizes alone": (lambda x: x.T * x.shape[0] + x.shape[1] // 2, [(torch.rand(6, 5),), (torch.rand(8, 6),)]),
    "arrays": (lambda a, n: a[: n - 1] * n, [(np.arange(6.0), 3), (np.arange(9.0), 4)]),
    "lowest": (lambda x, n, m: x[: min(n, m)] + max(n, m), [(torch.rand(20), 5, 8), (torch.rand(20), 6, 9)]),
}


@pytest.mark.parametrize("name", VARYING)
def test_numbers_that_vary_are_parameters(name):
    program, calls = VARYING[name]
    (graph,) = tenon.explain(tenon.compile(program, dynamic=True))(*calls[0]).graphs
    (function,) = ast.parse(graph.code()).body
    names = {}
    exec(graph.code(), names)
    parameters = [parameter.arg for parameter in function.args.args]
    given = program.__code__.co_varnames[: program.__code__.co_argcount]
    assert sorted(parameters) == sorted(given), graph.code()
    for call in calls:
        inputs = [call[given.index(parameter)] for parameter in parameters]
        for results in (names[function.name](*inputs), graph.forward(*inputs)):
            np.testing.assert_allclose(np.asarray(results[0]), np.asarray(program(*call)), rtol=1e-6)


COMPUTED = {
    "largest": lambda x: x / x.max().item() + (x.max().item() * 2 - 1),
    "counted": lambda x: (x * (x > 0.5).sum().item(), (x > 0.5).sum().item() / 3),
    "functions": lambda x: x * math.exp(-abs(x[0].item())) + min(x[1].item(), 0.25),
    "before a write": lambda x: (x.sum().item(), x.add_(1).sum().item()),
    "arrays": lambda x: (x.numpy() * float(x.numpy()[0]), -float(x.numpy()[1])),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_numbers_that_the_graph_computes_have_types(name):
    program = COMPUTED[name]
    (graph,) = tenon.explain(program)(torch.rand(3)).graphs
    code = graph.code()
    (function,) = ast.parse(code).body
    types = [ast.literal_eval(line.annotation) for line in function.body if isinstance(line, ast.AnnAssign)]
    assert {"int", "float"} & set(types), code
    names = {}
    exec(code, names)
    x = torch.rand(3)
    want = program(x.clone())
    for results in (names[function.name](x.clone()), graph.forward(x.clone())):
        for one, other in zip(results, want if isinstance(want, tuple) else (want,), strict=False):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6)


def test_floats_that_vary_have_their_type():
    (graph,) = tenon.explain(tenon.compile(lambda x, s: x * (s * 2 + 1), dynamic=True))(torch.rand(3), 0.5).graphs
    annotations = [ast.literal_eval(parameter.annotation) for parameter in ast.parse(graph.code()).body[0].args.args]
    assert sorted(annotations) == ["f32[s0] on cpu", "float"]


def test_a_tensor_of_a_class_of_the_program():
    class Marked(torch.Tensor):
        pass

    for program in (lambda x: x * 2 + 1, lambda x: torch.relu(x).sum(0), lambda x: (x, x.as_subclass(torch.Tensor) * 3)):
        for x in (torch.rand(3).as_subclass(Marked), torch.nn.Parameter(torch.rand(3), requires_grad=False), torch.nn.Buffer(torch.rand(3))):
            explanation = tenon.explain(program)(x)
            for graph in explanation.graphs:
                ast.parse(graph.code())
            codes_of(program, x)
