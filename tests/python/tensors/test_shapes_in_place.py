"""Functions that change a tensor's shape in place: of the graph's own tensors, it stays the object that it is."""
import pytest

import tenon

torch = pytest.importorskip("torch")

from tests.python.tensors.writes import check_writes, copies  # noqa: E402


def numbers(*shape):
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)


def seen(tensor):
    """What a tensor says of its memory that its elements do not."""
    return tensor._version, tensor._base is None, tensor.storage_offset()


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.unsqueeze_(-1),
        lambda y: y.unsqueeze_(dim=1),
        lambda y: y.squeeze_(),
        lambda y: y.squeeze_(1),
        lambda y: y.transpose_(0, 2),
        lambda y: y.transpose_(dim0=0, dim1=0),
        lambda y: y.swapaxes_(0, 1),
        lambda y: y.swapdims_(1, 2),
        lambda y: y.unsqueeze_(0).squeeze_().t_(),
    ],
)
@pytest.mark.parametrize("dynamic", [None, True])
def test_the_object_stands_for_the_view(check, change, dynamic):
    def fn(x):
        y = x * 2
        other = y
        z = change(y)
        y[0] = 7
        z.add_(1)
        return y, z is y, other is y, y.shape, y.stride(), len(y), y.is_contiguous(), y.is_leaf

    calls = (numbers(2, 1, 3),), (numbers(3, 1, 4),)
    check(fn, *calls, dynamic=dynamic)
    for call in calls:
        assert seen(tenon.compile(fn)(*call)[0]) == seen(fn(*call)[0])
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (torch.linspace(-1, 1, 4).unsqueeze_(-1) * x, torch.arange(3).unsqueeze_(0)),
        lambda x: [row.sum() for row in (x + 1).t_()],
        lambda x: (x + 1).t_()[1:].neg_(),
        lambda x: torch.where(x > 2, x, 0).t_().t_().view(-1),
    ],
)
def test_programs(check, fn):
    check(fn, (numbers(4, 4),))
    assert tenon.stats()["graph_breaks"] == 0


def test_views_made_afterwards_share_memory(check):
    def fn(x):
        y = x + 1
        y.t_()
        v = y[0]
        v.mul_(3)
        y[:, 1] = 0
        return y, v

    check_writes(check.same, fn, copies(numbers(3, 4)))
    y, v = tenon.compile(fn)(numbers(3, 4))
    assert v._base is y
    assert tenon.stats()["graph_breaks"] == 0


def test_a_view_of_the_graphs_own_tensor_changes_alone(check):
    def fn(x):
        y = x + 1
        v = y[1]
        v.unsqueeze_(0)
        w = v * 2
        y[1, 0] = 50
        v[0, 1] = 60
        return y, v, w

    check_writes(check.same, fn, copies(numbers(3, 4)))
    y, v, _ = tenon.compile(fn)(numbers(3, 4))
    assert v._base is y
    assert tenon.stats()["graph_breaks"] == 0


def test_what_is_known_of_a_constant_is_not_known_of_its_new_shape(check):
    def fn(x):
        y = torch.tensor([[1, 2], [3, 4]])
        y.t_()
        return x * int(y[0, 1]), y

    check(fn, (numbers(2),), fallbacks=None)


@pytest.mark.parametrize(
    "change",
    [
        lambda x, y: x.unsqueeze_(0),
        lambda x, y: x[0].unsqueeze_(0),
        lambda x, y: (y.view(-1), y.t_(), y.add_(1))[0],
        lambda x, y: y.resize_(2, 2),
        lambda x, y: y.as_strided_((2, 2), (1, 2)),
        lambda x, y: (x.detach().unsqueeze_(0), x.add_(1))[0],
        lambda x, y: torch.broadcast_to(y[0], (2, 4)).t_(),
    ],
)
def test_other_tensors_are_eagers(check, change):
    def fn(x):
        y = x + 1
        z = change(x, y)
        y.mul_(2)
        return y, z, x

    check_writes(check.same, fn, copies(numbers(3, 4)))


def outcome(fn, x):
    try:
        result = fn(x)
        result[0].sum().backward()
        return *result, [seen(t) for t in result if isinstance(t, torch.Tensor)], x.grad
    except RuntimeError as failure:
        return type(failure), "modified by an inplace operation" in str(failure)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: ((x * 3).unsqueeze_(0) * 2,),
        lambda x: ((x * x).t_(),),
        lambda x: (x.exp().t_() * 2,),  # which keeps its result, and finds it written
        lambda x: (x.exp().t_().exp(),),
        lambda x: ((x * 2)[0].unsqueeze_(0) * 5,),
        lambda x: (lambda y: (y.t_().mul_(y), y.requires_grad, y.is_leaf))(x * 2),
    ],
)
def test_gradients(check, program):
    want = outcome(program, numbers(3, 4).requires_grad_())
    compiled = tenon.compile(program)
    for _ in range(2):
        check.same(outcome(compiled, numbers(3, 4).requires_grad_()), want)


def test_leaves_are_refused_as_torch_does(check):
    def fn(x):
        y = torch.zeros(2, requires_grad=True)
        try:
            y.unsqueeze_(0)
        except RuntimeError as refused:
            return x, str(refused), y.shape
        return x, "", y.shape

    check(fn, (numbers(2),), fallbacks=None)


def test_without_grad_mode(check):
    def fn(x):
        with torch.no_grad():
            y = (x * 2).t_()
        return y, y.requires_grad, y.is_leaf

    def run(f):
        return f(numbers(3, 4).requires_grad_())

    for _ in range(2):
        check.same(run(tenon.compile(fn)), run(fn))


def test_training_step(check):
    def step(x):
        y = (x * x).t_()
        y.sum().backward()
        return y.detach()

    for _ in range(2):
        ours, plain = numbers(3, 4).requires_grad_(), numbers(3, 4).requires_grad_()
        check.same((tenon.compile(step)(ours), ours.grad), (step(plain), plain.grad))
