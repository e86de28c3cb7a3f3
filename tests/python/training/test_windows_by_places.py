"""Gradients of windows, as ``unfold`` and ``as_strided`` give them: they are a part of the graph."""
import pytest

import tenon

torch = pytest.importorskip("torch")

PROGRAMS = {
    "windows that overlap": lambda x: x.as_strided((3, 4), (4, 2)),
    "chunks, as of a Longformer": lambda x: x.view(2, 4, 3).as_strided(size=[3, 4, 3], stride=[6, 3, 1]),
    "broadcast": lambda x: x.as_strided((2, 3, 4), (0, 2, 1)),
    "with gaps, of what is computed": lambda x: (x * 2).as_strided((2, 3), (12, 4)),
    "dimensions in another order": lambda x: x.as_strided((6, 4), (1, 6)),
    "of one that lies in another order": lambda x: (x * 2).t().as_strided((3, 4), (6, 2)) + x.t().as_strided((3, 4), (6, 1)),
    "one element": lambda x: x.as_strided((), ()),
    "a function": lambda x: torch.as_strided(x, (5, 5), (1, 3)),
    "of a part": lambda x: x[1:].as_strided((2, 3), (6, 1)),
    "an offset": lambda x: (x * 2).as_strided((2, 3), (6, 2), 1),
    "written": lambda x: (x * 2).as_strided((2, 3), (6, 2)).mul_(3) + 1,
}


def gradient(call, x):
    x = x.clone().requires_grad_()
    y = call(x)
    (y.sin() * torch.arange(1.0, 1 + y.numel(), dtype=y.dtype).view(y.shape)).sum().backward()
    return y.detach(), y.stride(), y.storage_offset(), x.grad


@pytest.mark.parametrize("level", ["function", "step"])
@pytest.mark.parametrize("call", PROGRAMS.values(), ids=PROGRAMS)
def test_gradients(call, level):
    x = torch.randn(4, 6, dtype=torch.float64)
    mine = gradient(tenon.compile(call), x) if level == "function" else tenon.compile(gradient)(call, x)
    torch.testing.assert_close(mine, gradient(call, x))


def test_it_stays_in_the_graph():
    x = torch.randn(4, 6, requires_grad=True)
    for call in (PROGRAMS["windows that overlap"], PROGRAMS["broadcast"], PROGRAMS["one element"]):
        tenon.compile(lambda x, call=call: call(x) * 2, fullgraph=True)(x).sum().backward()
    assert tenon.stats()["opaque_nodes"] == 0


def test_sizes_that_tensors_of_known_values_give():
    def windows(x):
        count = torch.div(x.size(0), 2, rounding_mode="trunc")
        rows = x.view(count, 2, x.size(1))
        return rows.as_strided((count, 3), (6, torch.tensor(1))) + x.new_zeros(count, 3)

    x = torch.randn(4, 6, requires_grad=True)
    mine, wanted = tenon.compile(windows, fullgraph=True)(x), windows(x)
    torch.testing.assert_close(mine, wanted)
    torch.testing.assert_close(torch.autograd.grad(mine.sum(), x), torch.autograd.grad(wanted.sum(), x))


WINDOWS = {
    "at each place": ((10,), lambda x: x.unfold(0, 3, 1)),
    "with gaps": ((11,), lambda x: x.unfold(0, 2, 4)),
    "side by side": ((12,), lambda x: x.unfold(0, 3, 3)),
    "with a rest": ((13,), lambda x: x.unfold(0, 5, 2)),
    "of all": ((7,), lambda x: x.unfold(0, 7, 1)),
    "of more than is cut into rows": ((40,), lambda x: x.unfold(0, 20, 1)),
    "in the middle": ((3, 9, 2), lambda x: x.unfold(1, 4, 3)),
    "patches": ((2, 3, 8, 8), lambda x: x.unfold(2, 3, 2).unfold(3, 3, 2)),
    "of no dimension": ((), lambda x: x.unfold(0, 1, 1)),
}


@pytest.mark.parametrize("shape, windows", WINDOWS.values(), ids=WINDOWS)
def test_windows_and_their_second_derivatives(shape, windows):
    def gradients(x):
        y = windows(x)
        (first,) = torch.autograd.grad((y**3 * torch.arange(1.0, 1 + y.numel(), dtype=y.dtype).view(y.shape)).sum(), x, create_graph=True)
        return first, torch.autograd.grad(first.pow(2).sum(), x)[0]

    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(tenon.compile(gradients, fullgraph=True)(x), gradients(x))
