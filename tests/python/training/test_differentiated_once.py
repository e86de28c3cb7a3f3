"""Gradients that torch does not differentiate again: they are computed as ever, and refused in torch's words when somebody differentiates them."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from tests.python.training.test_functions_that_leave import Once, inputs_of  # noqa: E402

D = torch.float64


def first_gradients(function, squared):
    """Gradients that may be differentiated, of x and w, and whether they have a history."""
    x, w = (t.requires_grad_() for t in inputs_of([(3, 4), (3, 4)]))
    y = function(x, w)
    found = torch.autograd.grad((y * y if squared else y).sum(), (x, w), create_graph=True, allow_unused=True)
    return x, w, found, [g is not None and g.requires_grad for g in found]


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x, w: Once.apply(x * 2), "trying to differentiate twice a function that was marked with @once_differentiable"),
        (lambda x, w: Once.apply(x * 2) * x + w**3, "trying to differentiate twice a function that was marked with @once_differentiable"),
        (lambda x, w: torch.cdist(x, x * w), "the derivative for '_cdist_backward' is not implemented."),
        (lambda x, w: torch.cdist(x, w, p=1.0), "the derivative for '_cdist_backward' is not implemented."),
    ],
    ids=["a function", "beside others", "distances", "distances of order 1"],
)
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph:UserWarning")
def test_a_gradient_that_is_differentiated_once_is_refused_the_second_time(function, message, squared, tier):
    (_, _, want, expected), (_, _, got, tracked) = first_gradients(function, squared), first_gradients(tenon.compile(function), squared)
    assert tracked == expected
    torch.testing.assert_close([None if g is None else g.detach() for g in got], [None if g is None else g.detach() for g in want])
    for run in (function, tenon.compile(function)):
        x, w, found, tracked = first_gradients(run, squared)
        if not tracked[0]:
            continue
        with pytest.raises(RuntimeError) as error:
            found[0].sum().backward()
        assert str(error.value) == message
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("squared", [False, True])
def test_a_walk_to_named_inputs_passes_over_what_is_differentiated_once(squared, tier):
    def function(x, w):
        return Once.apply(x * 2)

    for run in (function, tenon.compile(function)):
        x, w, found, _ = first_gradients(run, squared)
        if not found[0].requires_grad:
            continue
        assert torch.autograd.grad(found[0].sum(), (x, w), allow_unused=True, retain_graph=True) == (None, None)
        with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
            torch.autograd.grad(found[0].sum(), x, retain_graph=True)
        with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
            found[0].sum().backward()


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: Once.apply(x * 2) * x + w**3,
        lambda x, w: Once.apply(x * w) + x**3 * w,
        lambda x, w: (Once.apply(x) * Once.apply(w)).sum() + (x * w).sin().sum(),
    ],
    ids=["a factor", "a summand", "two"],
)
def test_a_walk_to_named_inputs_gives_what_goes_by_a_function_that_is_differentiated_once(function, squared, tier):
    second, refused = [], []
    for run in (function, tenon.compile(function)):
        x, w, found, _ = first_gradients(run, squared)
        second.append([torch.autograd.grad(g.sum(), (x, w), allow_unused=True, retain_graph=True) for g in found if g.requires_grad])
        try:
            refused.append(found[0].sum().backward())
        except RuntimeError as error:
            refused.append(str(error))
    torch.testing.assert_close(second[1], second[0])
    assert refused[1] == refused[0]
    assert tenon.stats()["graph_breaks"] == 0


def test_what_is_beside_a_function_that_is_differentiated_once_is_differentiated_again(tier):
    def function(x, w):
        return Once.apply(x) * 2 + w**3

    for run in (function, tenon.compile(function)):
        x, w, found, _ = first_gradients(run, False)
        torch.testing.assert_close(torch.autograd.grad(found[1].sum(), w)[0], 6 * w.detach())


def test_distances_by_products_are_differentiated_again(tier):
    def penalty(run):
        x = torch.linspace(-1, 1, 60, dtype=D).reshape(30, 2).requires_grad_()
        (first,) = torch.autograd.grad(run(x).cos().sum(), x, create_graph=True)
        return first.detach(), torch.autograd.grad(first.square().sum(), x)[0]

    def function(x):
        return torch.cdist(x, x)

    torch.testing.assert_close(penalty(tenon.compile(function)), penalty(function))
