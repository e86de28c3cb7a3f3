"""torch's functions of lists of tensors: calls on each."""

import pytest

import tenon

torch = pytest.importorskip("torch")


def tensors():
    torch.manual_seed(0)
    return [torch.randn(2, 3), torch.randn(4), torch.randn(())]


CALLS = {
    "add": lambda a, b: torch._foreach_add(a, b, alpha=2),
    "add_number": lambda a, b: torch._foreach_add(a, 1.5),
    "add_numbers": lambda a, b: torch._foreach_add(a, [1.5, 2, 3.0]),
    "mul_tensor": lambda a, b: torch._foreach_mul(a, b[2]),
    "pow": lambda a, b: torch._foreach_pow(2.0, a),
    "norm": lambda a, b: torch._foreach_norm(a, 1),
    "maximum": lambda a, b: torch._foreach_maximum(a, 0.0),
    "lerp": lambda a, b: torch._foreach_lerp(a, b, 0.25),
    "addcmul": lambda a, b: torch._foreach_addcmul(a, b, b, [1.0, 2.0, 3.0]),
    "in_place": lambda a, b: (torch._foreach_mul_(a, 0.5), torch._foreach_addcdiv_(a, b, torch._foreach_exp(b), -0.1), torch._foreach_sqrt_(torch._foreach_abs(a)))[1],
    "copy": lambda a, b: torch._foreach_copy_(a, b),
    "zero": lambda a, b: torch._foreach_zero_(a),
    "twice": lambda a, b: torch._foreach_add_([a[0], a[0]], 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_on_lists_is_as_in_eager(name):
    def fn(a, b):
        return CALLS[name](a, b), a[0] * 2

    compiled = tenon.compile(fn)
    for _ in range(3):
        mine, theirs, other = tensors(), tensors(), [t + 1 for t in tensors()]
        got, want = compiled(mine, other), fn(theirs, other)
        assert type(got[0]) is type(want[0])
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(mine, theirs)
        assert [t._version for t in mine] == [t._version for t in theirs]
    assert tenon.stats()["graph_breaks"] == 0


def test_lists_that_differ_in_length_are_refused_before_a_write():
    compiled = tenon.compile(lambda a, b: torch._foreach_add_(a, b))
    mine = tensors()
    with pytest.raises(RuntimeError):
        compiled(mine, mine[:2])
    torch.testing.assert_close(mine, tensors())
