"""Calls of torch and NumPy that the catalogue has no op for: one node each, made again by the library on every run."""
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


@pytest.fixture
def library():
    library = torch.library.Library("tenon_test", "DEF")
    yield library
    library._destroy()


def opaque_nodes():
    return tenon.stats()["opaque_nodes"]


def tensor(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "fn, nodes",
    [
        (lambda x: torch.fft.irfft(torch.fft.rfft(x * 2)) + 1, 2),
        (lambda x: tuple(torch.linalg.svd(x, full_matrices=False)), 1),
        (lambda x: torch.linalg.qr(x).Q @ torch.linalg.qr(x).R, 2),
        (lambda x: torch.special.i1(x), 1),
        (lambda x: x.to(torch.complex64).sqrt().abs() + 1, 1),
        (lambda x: torch.view_as_real(torch.complex(x, x).sqrt()) * 2, 1),
        (lambda x: torch.complex(x, -x).sqrt().t().clone(), 2),
        (lambda x: torch.ops.aten.cosh.default(x) + torch.ops.aten.cosh(x), 2),
    ],
    ids=["fft", "tuple", "named_tuple", "special", "complex", "reinterpreted", "complex_strides", "operator"],
)
def test_a_call_without_an_op_is_one_node(check, fn, nodes):
    with torch.no_grad():
        check(fn, (tensor(4, 6),))
    assert opaque_nodes() == nodes
    assert tenon.stats()["graph_breaks"] == 0


def test_pivots_are_never_zeros(check):
    """How a result lies is asked of torch's kernels over zeros: these would write beside their memory, by pivots that name no row."""
    a, b = tensor(6, 6), tensor(6, 3, seed=1)
    with torch.no_grad():
        check(lambda ld, p, b: torch.linalg.ldl_solve(ld, p, b), (*torch.linalg.ldl_factor(a + a.t()), b))
        check(lambda b, lu, p: torch.linalg.lu_solve(lu, p, b), (b, *torch.linalg.lu_factor(a)))
    assert opaque_nodes() > 0


def test_complex_inputs_and_outputs(check):
    check(lambda z, x: (z * x + 1, z.abs()), (torch.complex(tensor(3, 4), tensor(3, 4, seed=1)), tensor(4)))
    assert tenon.stats()["graph_breaks"] == 0


def test_numpy_functions(check):
    check(lambda a: np.fft.rfft(a).real + np.linalg.norm(a, axis=1)[:, None], (np.arange(12.0).reshape(3, 4),))
    assert tenon.stats()["graph_breaks"] == 0


def test_an_operator_of_the_users_gets_arguments_of_its_own(library):
    kept = []

    def keep(x):
        kept.append(x)
        return x + 1

    library.define("keep(Tensor x) -> Tensor")
    library.impl("keep", keep, "CPU")
    library.impl("keep", lambda x: torch.empty_like(x), "Meta")

    fn = tenon.compile(lambda x: torch.ops.tenon_test.keep(x * 2) * 3)
    x = tensor(5)
    for k in range(2):
        torch.testing.assert_close(fn(x + k), ((x + k) * 2 + 1) * 3)
    assert opaque_nodes() == 1 and len(kept) == 2
    torch.testing.assert_close(kept[0], x * 2)
    torch.testing.assert_close(kept[1], (x + 1) * 2)


def test_an_operator_writes_what_it_declares(library):
    library.define("grow(Tensor(a!) x) -> Tensor")
    library.impl("grow", lambda x: x.add_(1).clone(), "CPU")
    library.impl("grow", lambda x: torch.empty_like(x), "Meta")
    fn = tenon.compile(lambda x: torch.ops.tenon_test.grow(x) * 2)
    x = torch.zeros(3)
    for k in range(1, 3):
        torch.testing.assert_close(fn(x), torch.full((3,), 2.0 * k))
        torch.testing.assert_close(x, torch.full((3,), float(k)))
        assert x._version > 0
    assert opaque_nodes() == 1 and tenon.stats()["graph_breaks"] == 0


def test_custom_operators_that_write(check, library):
    @torch.library.custom_op("tenon_test::scale", mutates_args={"x", "others"})
    def scale(x: torch.Tensor, by: float, others: list[torch.Tensor], y: torch.Tensor | None = None) -> None:
        x.mul_(by)
        for other in others:
            other.add_(x.sum())

    @torch.library.custom_op("tenon_test::both", mutates_args={"out"})
    def both(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        out.copy_(x * 2)
        return x + 1

    both.register_fake(lambda x, out: torch.empty_like(x))

    def fn(x, y):
        part = x[1]
        scale(part, 3.0, [y, y.clone()], y=None)
        z = torch.empty_like(x)
        w = both(x, out=z)
        return part * 2, z + w, y

    check(fn, (tensor(3, 4), tensor(3, 4, seed=1)))
    assert tenon.stats()["graph_breaks"] == 0
    mine, theirs = tensor(3, 4), tensor(3, 4)
    tenon.compile(fn)(mine, tensor(3, 4)), fn(theirs, tensor(3, 4))
    torch.testing.assert_close(mine, theirs)


def test_a_function_of_torch_that_writes_two_tensors():
    def run(scale, tracker, found):
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
        torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
        return scale.item(), tracker.item()

    def given():
        return torch.full((), 4.0), torch.full((), 0, dtype=torch.int32), torch.zeros(())

    compiled = tenon.compile(run)
    assert compiled(*given()) == compiled(*given()) == run(*given()) == (8.0, 1)


def test_an_operator_that_writes_a_tensor_given_twice_breaks(library):
    library.define("into(Tensor x, Tensor(a!) out) -> ()")
    library.impl("into", lambda x, out: (out.add_(1), out.add_(x.clone()), None)[2], "CPU")
    library.impl("into", lambda x, out: None, "Meta")
    fn = tenon.compile(lambda x: (torch.ops.tenon_test.into(x, x), x * 2)[1])
    for x in (torch.ones(3), torch.zeros(3)):
        torch.testing.assert_close(fn(x.clone()), (x + 1) * 4)
    fn = tenon.compile(lambda x: (torch.ops.tenon_test.into(x[1:], x[:-1]), x * 2)[1])
    mine, theirs = torch.arange(4.0), torch.arange(4.0)
    torch.ops.tenon_test.into(theirs[1:], theirs[:-1])
    torch.testing.assert_close(fn(mine), theirs * 2)


def test_an_operator_without_tensors_is_called_once_a_call(library):
    ticks = []
    library.define("tick(int n) -> int")
    library.impl("tick", lambda n: ticks.append(n) or len(ticks), "CompositeExplicitAutograd")
    fn = tenon.compile(lambda x: (torch.ops.tenon_test.tick(3), x + 1))
    for k in range(3):
        count, result = fn(tensor(3))
        assert count == k + 1 and ticks == [3] * (k + 1)
        torch.testing.assert_close(result, tensor(3) + 1)


def test_an_operator_that_takes_an_object_is_not_tried_on_it(check):
    def fn(x):
        with torch.autograd.profiler.record_function("part"):  # its operators open and close a record, and crash at the second closing
            y = x + 1
        return y * 2

    with torch.no_grad():
        check(fn, (tensor(3),))


def test_a_failing_call_raises_its_own_error():
    fn = tenon.compile(lambda x: torch.linalg.cholesky(x) + 1)
    good = torch.eye(3)
    torch.testing.assert_close(fn(good), good + 1)
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        fn(-good)
    torch.testing.assert_close(fn(2 * good), torch.linalg.cholesky(2 * good) + 1)


def test_a_constant_without_elements_is_given_as_it_is(check):
    check(lambda x: torch.linalg.svdvals(torch.ones(0, 3)) + x, (torch.ones(0),))


def test_what_the_meta_device_gets_wrong_runs_eagerly(library):
    library.define("lie(Tensor x) -> Tensor")
    library.impl("lie", lambda x: x[:2].clone(), "CPU")
    library.impl("lie", lambda x: torch.empty_like(x), "Meta")
    fn = tenon.compile(lambda x: torch.ops.tenon_test.lie(x) + 1)
    x = tensor(5)
    for _ in range(2):
        torch.testing.assert_close(fn(x), x[:2] + 1)
    assert tenon.stats()["eager_fallbacks"] == 2


def test_a_dead_call_is_made_all_the_same(library):
    calls = []
    library.define("count(Tensor x) -> Tensor")
    library.impl("count", lambda x: calls.append(1) or x + 1, "CPU")
    library.impl("count", lambda x: torch.empty_like(x), "Meta")

    def fn(x):
        torch.ops.tenon_test.count(x)
        torch.ops.tenon_test.count(x)
        return x * 2

    compiled = tenon.compile(fn)
    x = tensor(4)
    for runs in range(1, 3):
        torch.testing.assert_close(compiled(x), x * 2)
        assert len(calls) == 2 * runs


def test_training_batch_norm_keeps_its_statistics():
    norm = torch.nn.BatchNorm1d(4)
    twin = torch.nn.BatchNorm1d(4)
    fn = tenon.compile(lambda x: norm(x))
    with torch.no_grad():
        for k in range(3):
            x = tensor(8, 4, seed=k)
            torch.testing.assert_close(fn(x), twin(x))
            torch.testing.assert_close(norm.running_mean, twin.running_mean)


def test_sizes_that_depend_on_data_break():
    fn = tenon.compile(lambda x: torch.nn.functional.one_hot(x) * 2)
    for x in (torch.tensor([1, 1, 2]), torch.tensor([1, 2, 3])):
        torch.testing.assert_close(fn(x), torch.nn.functional.one_hot(x) * 2)
    assert tenon.stats()["graph_breaks"] > 0


def test_a_vector_of_as_many_elements_as_there_are_is_a_result():
    fn = tenon.compile(lambda x: torch.repeat_interleave(x, x) * 2)
    for x in (torch.tensor([1, 1, 2]), torch.tensor([1, 2, 3]), torch.tensor([0, 0, 1])):
        torch.testing.assert_close(fn(x), torch.repeat_interleave(x, x) * 2)
    assert tenon.stats()["graph_breaks"] == 0 and tenon.stats()["graphs"] == 1


def test_graphs_for_callables_hold_the_call_itself(graphs):
    fn = tenon.compile(lambda x: torch.fft.rfft(x).abs(), backend=graphs)
    x = tensor(8)
    torch.testing.assert_close(fn(x), torch.fft.rfft(x).abs())
    assert len(graphs.seen) == 1


def test_moves_to_the_cpu_change_nothing(check):
    check(lambda x: (x.to("cpu") + 1, x.to(torch.device("cpu"), torch.float64), x.to(device="cpu") * 2, x.to(x.device).t()), (tensor(3, 4),))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("device", ["meta", "meta:0", torch.device("meta")])
def test_moves_to_the_meta_device(device):
    def run(x):
        return x.to(device).device.type, x.to(device, torch.float64).is_meta, (torch.nn.Linear(4, 2, device=device)(x.to(device)) + 1).shape

    assert tenon.compile(run)(tensor(3, 4)) == run(tensor(3, 4))


def test_attention_asks_for_modes(check):
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    with torch.no_grad():
        check(lambda x: attention(x, x, x)[0], (tensor(2, 5, 8),))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_layers(check, kind):
    torch.manual_seed(0)
    layer = kind(6, 4, batch_first=True).eval()
    with torch.no_grad():
        check(lambda x: layer(x)[0] * 2, (tensor(2, 5, 6),), (tensor(2, 5, 6, seed=1),))
    assert tenon.stats()["graph_breaks"] == 0


def test_a_call_whose_strides_are_not_known_runs_eagerly(check):
    pooled, places = torch.nn.functional.max_pool2d(tensor(1, 2, 4, 6).to(memory_format=torch.channels_last), 2, return_indices=True)
    with torch.no_grad():
        check(lambda x, i: torch.nn.functional.max_unpool2d(x, i, 2) + 1, (pooled, places), fallbacks=None)


@pytest.mark.parametrize("weights", [True, False])
def test_attention_with_its_own_kernel(check, weights):
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    with torch.no_grad():
        check(lambda x: attention(x, x, x, need_weights=weights), (tensor(2, 5, 8),))
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.skipif(os.environ.get("TENON_TEST_DEVICE", "").startswith("cuda"), reason="torch packs a matrix of the host's memory, and reads one of a card as if it were that")
def test_a_result_that_carries_more_than_elements_is_no_node(check):
    def fn(x, weight, bias):
        packed = torch.fbgemm_pack_gemm_matrix_fp16(weight * 1)
        return torch.fbgemm_linear_fp16_weight(x, packed, bias) + 1

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(fn, (tensor(3, 4), tensor(5, 4), tensor(5)), fallbacks=None)


def test_what_torch_imports_for_an_answer_changes_no_filters():
    done = subprocess.run([sys.executable, "-c", """
import warnings, torch, tenon
before = list(warnings.filters)
compiled = tenon.compile(lambda x: torch.fft.rfft(x * 2).abs() + 1)
compiled(torch.ones(8))
assert tenon.stats()["graph_breaks"] == 0
assert warnings.filters == before
"""], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
