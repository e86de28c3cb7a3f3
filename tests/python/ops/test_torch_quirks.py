"""What torch's functions do against expectation, compiled: defaults of its C functions, numbers that are none, dtypes that do not go together."""
import pytest

import tenon

torch = pytest.importorskip("torch")
F = torch.nn.functional
nan = float("nan")


def x(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) + 0.1


with_nan = x(4, 6).index_fill(1, torch.tensor([2]), nan)
signs = torch.tensor([1.0, -1.0, 1.0, -1.0])


@pytest.mark.parametrize(
    "fn, args",
    [
        (torch.kl_div, (x(4, 6), x(4, 6, seed=1))),
        (torch.hinge_embedding_loss, (x(4), signs)),
        (torch.binary_cross_entropy_with_logits, (x(4, 6), x(4, 6, seed=1))),
        (torch.margin_ranking_loss, (x(4), x(4, seed=1), signs)),
        (torch.cosine_embedding_loss, (x(4, 6), x(4, 6, seed=1), signs)),
        (torch.triplet_margin_loss, (x(4, 6), x(4, 6, seed=1), x(4, 6, seed=2))),
        (torch._C._nn.mse_loss, (x(4, 6), x(4, 6, seed=1))),
        (lambda a, b: F.kl_div(a, b, reduction="batchmean"), (x(4, 6), x(4, 6, seed=1))),
        (lambda a, b: F.soft_margin_loss(a, b, reduction="none"), (x(4, 3), torch.tensor([[0, 1, 2]] * 4, dtype=torch.uint8))),
        (lambda a, b: F.multi_margin_loss(a, b, reduction="none"), (with_nan, torch.tensor([0, 2, 3, 5]))),
        (lambda a: torch.addmm(torch.ones(4, 4), a, a.T, alpha=nan), (x(4, 0),)),
        (lambda a: torch.baddbmm(torch.ones(2, 4, 4), a, a.mT, alpha=nan), (x(2, 4, 0),)),
        (lambda a: F.group_norm(a * 1000, 6), (x(4, 6, 1, 1),)),
        (lambda a: torch.combinations(a * 2, 2), (x(5),)),
        (lambda a: torch.histogram(a, 5)[0] + 1, (x(4, 6),)),
        (lambda a, n: a.repeat_interleave(n) * 2, (x(4), torch.tensor([1, 2, 0, 3]))),
        (lambda n: torch.bincount(n) + 1, (torch.tensor([1, 2, 0, 3, 3]),)),
        (lambda a: (a * 2).as_strided((2, 3), (6, 2), 1) + 1, (x(4, 6),)),
        (lambda a: a.as_strided((2, 3), (6, 2)), (x(4, 6),)),
    ],
)
def test_calls(check, fn, args):
    with torch.no_grad():
        check(fn, args)
    assert tenon.stats()["graph_breaks"] == 0


def test_sizes_found_by_a_kernel_of_torch_stay_a_break(check):
    with torch.no_grad():
        check(lambda i: F.one_hot(i) * 2, (torch.tensor([1, 2, 0]),))
        check(lambda a, i: [part * 2 for part in a.tensor_split(i)], (x(4, 6), torch.tensor([1, 2])))


def test_elements_beside_a_tensor_are_not_shown(check):
    whole = x(8)
    with torch.no_grad():
        check(lambda a: a.as_strided((4,), (1,), 0) * 2, (whole[4:],))
        check(lambda a: a.as_strided((3,), (3,)) * 2, (whole[:4],))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "fn",
    [
        lambda a, b: torch.add(a, b, alpha=0.587),
        lambda a, b: torch.sub(a, b, alpha=0.587),
        lambda a, b: torch.rsub(a, b, alpha=0.587),
        lambda a, b: torch.add(a, 2.7, alpha=0.3),
        lambda a, b: torch.sub(a, 2.7, alpha=0.3),
        lambda a, b: torch.addcmul(a, b, b, value=0.3),
        lambda a, b: torch.lerp(a, b, 0.3),
        lambda a, b: torch.lerp(a, b, 0.7),
        lambda a, b: a.mul(1.4).add_(b, alpha=-0.4).clamp_(0, 255).to(torch.uint8),
    ],
    ids=["add", "sub", "rsub", "add_number", "sub_number", "addcmul", "lerp", "lerp_to_the_end", "blend"],
)
def test_products_that_are_added_are_rounded_once(fn, dtype):
    a, b = (x(515, seed=seed).abs().to(dtype) * 255 for seed in (1, 2))
    with torch.no_grad():
        assert torch.equal(tenon.compile(fn)(a, b), fn(a, b))

