"""A call whose result nothing reads still raises and warns as plain execution does, also where the graph gives no result at all."""
import warnings

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional

VALUES, PLACES = torch.zeros(3), torch.tensor([5])


def outcome(fn, *arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            end = fn(*arguments)
        except Exception as error:
            end = type(error), str(error)
    return end, [str(w.message) for w in caught]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x[i],
        lambda x, i: x.gather(0, i),
        lambda x, i: F.embedding(i, x[:, None]),
        lambda x, i: F.embedding_bag(i[None], x[:, None]),  # a mean, whose division rules rewrite
        lambda x, i: F.one_hot(i, 3),
        lambda x, i: i // 0,
        lambda x, i: torch.bincount(-i),
        lambda x, i: torch.linalg.inv(torch.diag(x)),
        lambda x, i: F.grid_sample(torch.empty(1, 1, 0, 2), torch.empty(1, 1, 1, 2), align_corners=False),
        lambda x, i: F.nll_loss(torch.zeros(2, 3), torch.tensor([0, 5])),
    ],
)
def test_torch_raises(call):
    def program(x, i):
        call(x, i)
        return 1

    compiled = tenon.compile(program)
    expected = outcome(program, VALUES, PLACES)
    assert expected[0] != 1
    assert outcome(compiled, VALUES, PLACES) == outcome(compiled, VALUES, PLACES) == expected


@pytest.mark.parametrize("call", [np.log, lambda a: a / 0, lambda a: a.astype(np.int8), lambda a: a.astype(int) // 0])
def test_numpy_warns(call):
    def program(a):
        call(a)
        return a

    array = np.array([-1.0, 0.0, 1e300])
    compiled = tenon.compile(program)
    expected = outcome(program, array)
    assert expected[1]
    for _ in range(2):
        result, messages = outcome(compiled, array)
        assert result is array and messages == expected[1]

