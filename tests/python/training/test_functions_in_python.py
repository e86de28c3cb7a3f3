"""Functions that torch writes in C and the catalogue has no gradient for: one graph where the package has them in Python."""
import pytest

import tenon

torch = pytest.importorskip("torch")

CELLS = {
    "lstm": (torch.nn.LSTMCell, {}), "lstm without bias": (torch.nn.LSTMCell, {"bias": False}), "gru": (torch.nn.GRUCell, {}), "gru without bias": (torch.nn.GRUCell, {"bias": False}),
    "rnn": (torch.nn.RNNCell, {}), "rnn relu": (torch.nn.RNNCell, {"nonlinearity": "relu"}),
}


@pytest.mark.parametrize("cell, settings", CELLS.values(), ids=CELLS)
def test_cells(gradients, leaf, cell, settings):
    torch.manual_seed(0)
    layer = cell(3, 4, dtype=torch.float64, **settings)

    def fn(x):
        states, out = None, []
        for step in x:
            states = layer(step, states)
            out.append(states[0] if isinstance(states, tuple) else states)
        return torch.stack(out)

    gradients(fn, lambda: (leaf(3, 2, 3),))
    for p in layer.parameters():
        p.grad = None
    fn(leaf(3, 2, 3)).sin().sum().backward()
    want = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    tenon.compile(fn)(leaf(3, 2, 3)).sin().sum().backward()
    torch.testing.assert_close([p.grad for p in layer.parameters()], want)


@pytest.mark.parametrize("dim", [0, 1, 2, None], ids=str)
def test_weight_norm(gradients, leaf, dim):
    torch.manual_seed(0)
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(3, 4, 2).double(), dim=dim)
    gradients(lambda x, g, v: torch.func.functional_call(layer, {"parametrizations.weight.original0": g, "parametrizations.weight.original1": v}, (x,)),
              lambda: (leaf(2, 3, 5), leaf(*layer.parametrizations.weight.original0.shape, seed=1), leaf(4, 3, 2, seed=2)))


@pytest.mark.parametrize("cell, settings", CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("shape", [(1, 4), (2, 1), (2, 3)])
def test_states_of_other_sizes_are_refused(cell, settings, shape):
    layer = cell(3, 4, **settings)
    bad = torch.zeros(shape)
    compiled = tenon.compile(lambda x: layer(x, (bad, bad) if cell is torch.nn.LSTMCell else bad))
    for _ in range(2):
        with pytest.raises(RuntimeError):
            compiled(torch.ones(2, 3))
