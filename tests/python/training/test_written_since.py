"""What torch keeps for gradients and a program has written since: torch's error, inside of a graph and across; and no graph ends for other writes."""
import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402


def exp_is_written(x, w):
    h = x.exp()
    h.mul_(2)
    return h


def softmax_is_written_through_a_view(x, w):
    h = (x * w).softmax(-1)
    h[0].zero_()
    return h


def an_operand_is_written(x, w):
    a = x * 2
    y = a * w
    a.add_(1)
    return y + a


def an_operand_of_a_product_is_written(x, w):
    a = x + 1
    y = a @ w
    a.relu_()
    return y + a


def one_of_two_like_calls_keeps_what_is_written(x, w):
    a, b = x + 1, x + 2
    y = a * torch.ones_like(w) + b * w
    a.add_(1)
    b.add_(1)
    return y


def a_call_keeps_nothing_of_a_factor_that_is_written(x, w):
    a = x + 1
    y = a * torch.ones_like(w)
    a.add_(1)
    return y


def a_part_of_an_operand_is_written(x, w):
    a = x + 1
    y = a.sin()
    a[0] = 0
    return y + a


def a_parameter_is_written(x, w):
    y = x * w
    with torch.no_grad():
        w.add_(1)
    return y


def a_turned_weight_is_written(x, w):
    h = w * 1
    y = F.linear(x, h)
    h.zero_()
    return y + h


def an_index_is_written(x, w):
    at = torch.tensor([0, 1, 1])
    y = x.index_select(0, at)
    at.zero_()
    return y * 2


def a_mask_is_written(x, w):
    mask = w.detach() > 0
    y = torch.where(mask, x, 0.0)
    mask.fill_(False)
    return y


def what_a_view_reads_is_written(x, w):
    a = x + 0
    y = a.t() @ w
    a.mul_(2)
    return y + a


def what_is_multiplied_by_itself_is_written(x, w):
    a = x + w
    a.mul_(a)
    return a


def what_is_multiplied_by_what_it_was_is_written(x, w):
    a = x.exp()
    a *= a.detach()
    return a


def a_result_is_written_that_decides_the_gradient_by_itself(x, w):
    a = torch.relu(x + w)
    y = a + 1
    a += y
    return y


def what_is_picked_from_is_written(x, w):
    a = x * w
    y = a.gather(0, torch.zeros(1, 4, dtype=torch.int64))
    a.sub_(1)
    return y


def a_norm_of_several_is_written(x, w):
    a = x * w
    y = a.norm(3, dim=1)
    y.add_(1)
    return y


def what_a_mask_chooses_from_is_written(x, w):
    y = x * 1
    z = y.masked_select(torch.eye(4, dtype=torch.bool))
    y.mul_(2)
    return z.sin().sum()


def queries_are_written(x, w):
    q, k = x.reshape(1, 1, 4, 4) * 1, w.reshape(1, 1, 4, 4) * 2
    y = torch.nn.functional.scaled_dot_product_attention(q, k, k)
    q.mul_(2)
    return y.sum()


def places_are_written(x, w):
    values, places = (x * w).kthvalue(2, dim=1)
    places.add_(1)
    return values


def an_operand_of_two_results_is_written(x, w):
    a = x * w
    least, most = torch.aminmax(a, dim=0)
    a.sub_(1)
    return least + most


REFUSED = [exp_is_written, softmax_is_written_through_a_view, an_operand_is_written, an_operand_of_a_product_is_written, a_part_of_an_operand_is_written,
           one_of_two_like_calls_keeps_what_is_written, a_parameter_is_written, a_turned_weight_is_written, an_index_is_written, a_mask_is_written, what_a_view_reads_is_written,
           what_is_multiplied_by_itself_is_written, what_is_multiplied_by_what_it_was_is_written, a_result_is_written_that_decides_the_gradient_by_itself,
           what_is_picked_from_is_written, places_are_written, an_operand_of_two_results_is_written, a_norm_of_several_is_written,
           what_a_mask_chooses_from_is_written, queries_are_written]


# ---- what torch does not keep, or keeps a copy of

def activations_in_place(x, w):
    h = F.conv1d(x[None], w[:, :, None])
    h.relu_()
    h = F.conv1d(h, w[:, :, None])
    return F.leaky_relu_(h, 0.1)


def a_residual_in_place(x, w):
    h = F.batch_norm(x @ w, None, None, training=True)
    h += x
    return h.relu_()


def self_in_place(x, w):
    h = x + w
    h.add_(h)
    h.pow_(2)
    h.mul_(w)
    h.sin_()
    h.div_(w)
    return F.silu(h, inplace=True)


def dropped_in_place(x, w):
    h = x @ w
    h.masked_fill_(h > 1, 0.5)
    return F.dropout(h, 0.0, training=True, inplace=True).softmax(-1)


def an_unkept_operand_is_written(x, w):
    a = x * w
    y = a.exp() + a.sum() + a.relu()
    a.add_(1)
    return y * a


def a_result_is_written(x, w):
    y = x / w
    y.add_(1)
    z = x @ w
    z.mul_(3)
    s = (x + w).sin()
    s.add_(y)
    m = x.max(1).values
    m.add_(1)
    return y * z + s + m


def what_only_a_detached_branch_keeps(x, w):
    a = x + 1
    y = a.detach() * 2
    a.mul_(w)
    return a + y


ALLOWED = [activations_in_place, a_residual_in_place, self_in_place, dropped_in_place, an_unkept_operand_is_written, a_result_is_written,
           a_call_keeps_nothing_of_a_factor_that_is_written, what_only_a_detached_branch_keeps]


def whole(body):
    def step(x, w):
        body(x, w).square().sum().backward()
    return step


def outcome(f, leaf):
    x, w = leaf(4, 4), leaf(4, 4, seed=1)
    try:
        result = f(x, w)
        if result is not None:
            result.square().sum().backward()
    except RuntimeError as error:
        return str(error).split("[")[0], x._version, w._version
    return x.grad, w.grad, x._version, w._version


def same(got, want):
    for g, e in zip(got, want, strict=True):
        if isinstance(e, torch.Tensor):
            torch.testing.assert_close(g, e)
        else:
            assert g == e


@pytest.mark.parametrize("way", ["afterwards", "within"])
@pytest.mark.parametrize("body", REFUSED)
def test_torch_refuses_what_was_written(body, way, leaf):
    f = body if way == "afterwards" else whole(body)
    want, compiled = outcome(f, leaf), tenon.compile(f)
    assert want[0].startswith("one of the variables needed for gradient computation has been modified by an inplace operation")
    for _ in range(3):
        same(outcome(compiled, leaf), want)


@pytest.mark.parametrize("way", ["afterwards", "within"])
@pytest.mark.parametrize("body", ALLOWED)
def test_other_writes_end_no_graph(body, way, leaf):
    f = body if way == "afterwards" else whole(body)
    want, compiled = outcome(f, leaf), tenon.compile(f)
    for _ in range(3):
        same(outcome(compiled, leaf), want)
    assert (tenon.stats()["graphs"], tenon.stats()["graph_breaks"], tenon.stats()["eager_fallbacks"]) == (1, 0, 0)


def test_a_step_may_write_what_a_walk_has_let_go_of(leaf):
    def step(x, w):
        loss = (x @ w).exp().sum() + (w * w).sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=0.01)
        w.grad = None
        again = (x @ w).exp().sum()
        again.backward()
        return again.detach()

    want, got = leaf(4, 4, seed=1), leaf(4, 4, seed=1)
    compiled = tenon.compile(step)
    for _ in range(3):
        torch.testing.assert_close(compiled(leaf(4, 4, grad=False), got), step(leaf(4, 4, grad=False), want))
        torch.testing.assert_close((got, got.grad), (want, want.grad))
        got.grad = want.grad = None
    assert (tenon.stats()["graphs"], tenon.stats()["graph_breaks"]) == (1, 0)


def test_a_question_that_large_tensors_leave_open_is_asked_again_of_small_ones(monkeypatch):
    from tenon import _kept_by_torch

    monkeypatch.setattr(_kept_by_torch, "_answers", {})

    def answer(size):
        like = [torch.empty(size, size, dtype=dtype, device="meta") for dtype in (torch.float32, torch.bool)]
        (x, mask), leaves = _kept_by_torch.operands(like, [True, False])
        return _kept_by_torch.refuses(torch.Tensor.masked_select, (x, mask), {}, leaves, [x], [])

    assert [answer(1100), answer(4), answer(1100)] == [None, True, True]


@pytest.mark.parametrize("kept", [True, False])
def test_a_parameter_whose_data_is_replaced_before_its_gradients_are_computed(kept, tier):
    """Where it is given the same again, as by what gathers parameters for a while, gradients are computed; else they are refused."""
    p, x = torch.nn.Parameter(torch.tensor([1.0, 2.0])), torch.tensor([3.0, 5.0])
    y = tenon.compile(lambda x: p * x * p)(x)
    p.data = p.detach().clone() if kept else torch.zeros(2)
    if kept:
        y.sum().backward()
        torch.testing.assert_close(p.grad, torch.tensor([6.0, 20.0]))
    else:
        with pytest.raises(RuntimeError, match=r"the data of a leaf variable, .*was replaced"):
            y.sum().backward()
