"""tenon.allow_in_graph: a function of the program as one node."""
import pytest

import tenon

torch = pytest.importorskip("torch")


@tenon.allow_in_graph
def by_sign(x, factor=2.0):
    if not x.is_meta and x.sum() < 0:
        return -x
    return x * factor


def test_a_marked_function_is_called_whole_at_every_run():
    def program(x):
        return by_sign(x + 1), by_sign(x - 10, factor=3.0) * 2

    compiled = tenon.compile(program, fullgraph=True)
    for x in (torch.ones(3), -torch.ones(3), torch.full((3,), 20.0)):
        torch.testing.assert_close(compiled(x), program(x))
    assert tenon.stats()["opaque_nodes"] == 2


def test_what_gives_no_tensor_ends_the_graph():
    @tenon.allow_in_graph
    def number(x):
        return float(x.numel())

    program = lambda x: x * number(x) + 1  # noqa: E731
    compiled = tenon.compile(program)
    torch.testing.assert_close(compiled(torch.ones(3)), program(torch.ones(3)))
    assert tenon.stats()["graph_breaks"] == 1


def test_only_functions_can_be_marked():
    with pytest.raises(tenon.ConfigError, match="takes a function"):
        tenon.allow_in_graph(torch.nn.Linear(2, 2))


def test_operators_without_tensors_are_called_at_every_run():
    calls = []

    @torch.library.custom_op("tenon_tests::count", mutates_args=())
    def count(step: int) -> int:
        calls.append(step)
        return len(calls)

    compiled = tenon.compile(lambda x: x + torch.ops.tenon_tests.count(1))
    assert [compiled(torch.zeros(1)).item() for _ in range(3)] == [1.0, 2.0, 3.0]
