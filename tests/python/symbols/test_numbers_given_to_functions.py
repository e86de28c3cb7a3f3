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
    "arange of floats": lambda n: np.arange(0.0, n),
    "arange of floats down": lambda n: np.arange(n, 1.0, -2.0, dtype=np.float32),
    "arange from minus zero": lambda n: np.copysign(1, np.arange(-0.0, n)),
    "linspace": lambda n: torch.linspace(0, 1, n),
    "linspace of NumPy": lambda n: np.linspace(0.1, 2, n),
    "linspace without its end": lambda n: np.linspace(-3, 0.3, n, endpoint=False, dtype=np.float32),
    "linspace of integers": lambda n: np.linspace(-7, 3, n, dtype=np.int64),
    "linspace to it": lambda n: np.linspace(0.3, n, 5),
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


ONE_FOR_ALL = {
    "arange": lambda n: np.arange(1.0, n),
    "linspace": lambda n: np.linspace(0, 2, n),
    "degrees of freedom": lambda n: np.var(np.arange(64.0), ddof=n),
    "split": lambda n: np.split(np.arange(4 * n), 4),
    "split of rows": lambda n: np.split(np.arange(6 * n).reshape(2, -1), 3, axis=1),
}


@pytest.mark.parametrize("name", ONE_FOR_ALL)
def test_a_graph_for_all_sizes_gives_the_bits_of_numpy(check, name):
    function = ONE_FOR_ALL[name]
    compiled = tenon.compile(function)
    for n in (5, 6, 7, 12, 31, 44, 45, 58):
        check.same(compiled(n), function(n))
    stats = tenon.stats()
    assert stats["graphs"] <= 2 and stats["graph_breaks"] == 0 and stats["eager_fallbacks"] == 0, stats


def test_parts_that_are_not_alike_are_refused():
    compiled = tenon.compile(lambda a: np.split(a, 3)[1] + 1)
    for n in (6, 9, 12, 15):
        assert compiled(np.arange(n)).tolist() == (np.split(np.arange(n), 3)[1] + 1).tolist()
    with pytest.raises(ValueError, match="equal division"):
        compiled(np.arange(16))
    assert compiled(np.arange(18)).tolist() == list(range(7, 13))
