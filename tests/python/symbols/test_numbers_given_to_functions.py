"""A number that varies as the size, place or step that a function is given: what it gives, or how it fails, as in plain execution."""
import numpy as np
import pytest
import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional

FUNCTIONS = {
    "arange": lambda n: torch.arange(n),
    "arange down": lambda n: torch.arange(n, 0, -2),
    "arange of NumPy": lambda n: np.arange(n),
    "linspace": lambda n: torch.linspace(0, 1, n),
    "repeat": lambda n: torch.ones(2).repeat(n),
    "padding": lambda n: F.pad(torch.ones(4), (n, 0)),
    "narrow": lambda n: torch.arange(8).narrow(0, 0, n),
    "unfold": lambda n: torch.arange(8).unfold(0, n, 1),
    "steps": lambda n: torch.arange(8)[::n],
    "element of a constant": lambda n: np.arange(8)[n],
    "diagonal": lambda n: torch.ones(4, 4).diagonal(n),
    "scatter at a place": lambda n: torch.zeros(5).scatter(0, torch.full((2,), n), torch.ones(2)),
    "scatter at places": lambda n: torch.zeros(4).scatter_add(0, torch.arange(n), torch.ones(n)),
    "put": lambda n: torch.zeros(5).put(torch.full((2,), n), torch.ones(2)),
    "add at": lambda n: torch.zeros(4).index_add(0, torch.full((2,), n), torch.ones(2)),
    "gather": lambda n: torch.ones(5, 2).gather(0, torch.full((2, 2), n)),
    "classes": lambda n: F.one_hot(torch.arange(3), n),
}


def answer(call, n):
    try:
        result = call(n)
    except Exception as error:
        return type(error), str(error)
    return type(result), result.dtype, result.shape, result.tolist()


@pytest.mark.parametrize("dynamic", [True, None], ids=["dynamic", "later"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_and_places(name, dynamic):
    function = FUNCTIONS[name]
    compiled = tenon.compile(function, dynamic=dynamic)
    for n in (2, 3, 1, 0, -1, 4, -2, 9, 3, 30, -40):
        assert answer(compiled, n) == answer(function, n), n
