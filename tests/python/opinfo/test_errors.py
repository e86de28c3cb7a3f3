"""Calls that eager execution refuses, compiled: what torch's operator database gives as errors, and arguments that no entry has."""
import sys
import warnings

import pytest

import tenon

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # torch.testing._internal wants it


def refusal(fn, *args, **kwargs):
    """The class of what a call raises; None where it returns."""
    try:
        fn(*args, **kwargs)
    except Exception as raised:
        return type(raised)
    return None


def test_errors_of_the_operator_database_are_raised(monkeypatch):
    from torch.testing._internal.common_methods_invocations import op_db

    monkeypatch.setattr("torch.testing._internal.opinfo.core.extract_test_fn", lambda: None)  # it reads the whole stack for each sample
    checked, differing = 0, []
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for op in op_db:
            for n, case in enumerate(op.error_inputs("cpu") if op.error_inputs_func else ()):
                sample, call = case.sample_input, op.op
                tenon.reset()
                compiled = tenon.compile(lambda *args, call=call, **kwargs: call(*args, **kwargs))
                want = refusal(call, sample.input, *sample.args, **sample.kwargs)
                checked += 1
                if refusal(compiled, sample.input, *sample.args, **sample.kwargs) != want:
                    differing.append((op.name, n, want))
    assert checked > 500 and not differing


def x(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.sub(x(3), x(3, dtype=torch.bool)),
        lambda: torch.lerp(x(3, dtype=torch.int32), x(3), 0.5),
        lambda: torch.maximum(x(3), 1.5),
        lambda: torch.eq(1.5, x(3)),
        lambda: torch.clamp(x(3), 0, x(3)),
        lambda: torch.isclose(x(3), x(3, dtype=torch.int32)),
        lambda: torch.ldexp(x(3), x(3, dtype=torch.bool)),
        lambda: torch.linalg.cross(x(5, 3), x(5, 3, dtype=torch.int32)),
        lambda: torch.cross(x(), x(5, 3)),
        lambda: torch.take_along_dim(x(2, 3), x(2, 3, dtype=torch.int32), 0),
        lambda: torch.roll(x(3), ()),
        lambda: torch.roll(x(3, 3), (1, 2), 0),
        lambda: torch.hsplit(x(6), 0),
        lambda: torch.select_scatter(x(), x(), 0, 2),
        lambda: torch.select_scatter(x(5, 5), x(5), 0, -100),
        lambda: torch.conv_transpose2d(x(1, 1, 4, 4), x(1, 1, 4, 4), None, (-1, 2)),
        lambda: torch.conv_transpose1d(x(1, 1, 4), x(1, 1, 4), None, 2, 1, 1, 1, -1),
        lambda: torch.conv_transpose1d(x(1, 1, 4), x(1, 1, 4), None, 2, 1, 2),
        lambda: torch.conv1d(x(1, 4, 5), x(1, 4, 0)),
        lambda: torch.conv_transpose3d(x(1, 1, 4, 3, 0), x(1, 2, 3, 4, 5), None, 2, 1, 1),
        lambda: torch.nn.functional.layer_norm(x(2, 2, 3), (2, 3), x(2, 3), x(3, 2)),
        lambda: torch.nn.functional.group_norm(x(5, 5, 5), 1, x(1, 5)),
        lambda: torch.nn.functional.adaptive_avg_pool2d(x(1, 8, 8, 8), (5,)),
        lambda: torch.nn.functional.avg_pool2d(x(1, 0, 8, 8), 2),
        lambda: torch.nn.functional.max_pool3d(x(0, 1, 2, 10), 1),
        lambda: torch.nn.functional.avg_pool3d(x(1, 2, 1, 4, 4), 2, 1, 1),
        lambda: torch.nn.functional.group_norm(x(1, 6), 6),
        lambda: torch.index_select(x(), 0, torch.tensor([0, 0])),
        lambda: torch.prod(x(2, 3, 4), dim=[0, 2]),
        lambda: torch.nn.functional.smooth_l1_loss(x(3), x(3), beta=-1.0),
        lambda: torch.nn.functional.pad(x(1, 5), (1, 1), "reflect", 2.0),
        lambda: torch.sum(x(*[1] * 65), 0),
        lambda: torch.quantile(x(1), torch.tensor([0.5, 1.1])),
        lambda: torch.nanquantile(x(4), torch.tensor([-0.1])),
        lambda: torch.nanquantile(x(1), torch.tensor([0.5, float("nan")])),
        lambda: torch.ops.aten.slice.Tensor(x(3), 1, 0, 2),
        lambda: torch.logsumexp(x(2, 3), dim=[]),
        lambda: torch.nn.functional.pad(x(1, 0, 4), (2, 2), "reflect"),
        lambda: torch.nn.functional.pad(x(1, 0, 4, 4), (2, 2, 2, 2), "replicate"),
        lambda: x().unflatten(0, [0]),
        lambda: torch.linalg.cross(x(), x(), dim=0),
        lambda: torch.take_along_dim(x(), torch.tensor(3), 0),
        lambda: torch.searchsorted(x(), x()),
        lambda: torch.bucketize(x(), x()),
        lambda: torch.searchsorted(x(3), x(3), side="left", right=True),
    ],
)
def test_a_call_that_eager_execution_refuses_is_refused(call):
    want = refusal(call)
    assert want is not None and refusal(tenon.compile(call)) == want


@pytest.mark.parametrize(
    "read",
    [
        lambda x, i: torch.nn.functional.one_hot(i, 3),
        lambda x, i: x[:1].expand(3).index_select(0, i) * 2,
        lambda x, i: x[0].reshape(1)[i],
        lambda x, i: torch.take(x[0], i),
        lambda x, i: x[:1].expand(3)[i] + i,
        lambda x, i: x[0].gather(0, i[0] + 3),
        lambda x, i: x[0].index_select(0, i[:1] + 3),
        lambda x, i: x[0].scatter(0, i[0] + 3, 1.0),
    ],
)
def test_an_index_out_of_range_is_noticed_where_all_elements_are_alike(read):
    x = torch.arange(3.0)
    for places in ([0, 1, 7], [0, 7, 1], list(range(40))):
        want = refusal(read, x, torch.tensor(places))
        assert want is not None and refusal(tenon.compile(read), x, torch.tensor(places)) == want


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x.index_add_(0, i, x),
        lambda x, i: x.put_(i, x),
        lambda x, i: x.scatter_(0, i, x),
        lambda x, i: torch.gather(x, 0, i, out=x),
        lambda x, i: i.index_copy_(0, i, i.clone()),
        lambda x, i: i.index_fill_(0, i, 1),
        lambda x, i: i.index_put_((i,), i.clone()),
    ],
)
def test_what_is_written_by_places_is_not_read_in_the_same_call(write):
    def arguments():
        return torch.ones(3), torch.tensor([0, 1, 2])

    want = refusal(write, *arguments())
    assert want is not None and refusal(tenon.compile(write), *arguments()) == want
