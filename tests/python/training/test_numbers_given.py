"""Numbers of what requires grad that leave a call, and that its gradients read."""
import pytest

import tenon

torch = pytest.importorskip("torch")


def stored(x, w, into):
    y = x * w
    into["f"] = float(y.sum())
    return y * into["f"]


def item(x, w, into):
    y = (x * w).exp()
    into["f"] = y.mean().item()
    return y / into["f"]


def shifted(x, w, into):
    y = x * w
    k = float(y.sum()) + 1
    into["f"] = k
    return y * k


def kept_and_given(x, w, into):
    s = (x * w).sum()
    into["f"] = s.item()
    return s * into["f"], s


def two(x, w, into):
    y = x * w
    into["a"], into["b"] = y.max().item(), [float(y.min())]
    return (y - into["b"][0]) / (into["a"] - into["b"][0])


@pytest.mark.parametrize("fn", [stored, item, shifted, kept_and_given, two], ids=lambda fn: fn.__name__)
def test_gradients_keep_what_the_caller_gets_as_a_number(fn, leaf, tier):
    compiled = tenon.compile(fn)
    for seed in range(3):
        found = []
        for way in (fn, compiled):
            x, w, into = leaf(3, 4, seed=seed, grad=False), leaf(4, seed=seed + 7), {}
            results = way(x, w, into)
            sum(r.sum() for r in (results if isinstance(results, tuple) else (results,))).backward()
            found.append((results, w.grad, into))
        torch.testing.assert_close(found[1][:2], found[0][:2])
        assert found[1][2].keys() == found[0][2].keys()
        for name, number in found[0][2].items():
            assert type(found[1][2][name]) is type(number)
            assert found[1][2][name] == pytest.approx(number)
