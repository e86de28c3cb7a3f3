"""torch.Size with sizes that vary: parts of it, sums, products; one compile serves them all."""
import math

import pytest

import tenon

torch = pytest.importorskip("torch")

PROGRAMS = {
    "part and sum": lambda x: x.reshape(x.shape[:-1] + (4, 2)),
    "sum on the right": lambda x: x.reshape((1,) + x.shape),
    "unpacked": lambda x: x.view(*x.shape[:-1], -1, 2).transpose(1, 2),
    "of size()": lambda x: x.reshape(*x.size()[:2], 4, 2),
    "in a list": lambda x: x.reshape(list(x.shape[:2]) + [4, 2]),
    "backwards": lambda x: x.new_zeros(x.shape[::-1]),
    "numel": lambda x: x.reshape(x.shape[:2].numel(), 8),
    "product": lambda x: x.view(math.prod(x.shape[:-1]), -1),
    "product from a start": lambda x: x.view(-1, 1) * math.prod(x.shape[1:], start=2),
    "made": lambda x: x.reshape(torch.Size([x.shape[0], x.shape[1], 4, 2])),
    "multiple": lambda x: x + len(x.shape * 2),
    "compared": lambda x: x + 1 if x.shape[:2] == x[..., 0].shape else x,
    "given": lambda x: (x + 1, x.shape[:-1], x.shape + x.shape[:1], x.shape[1:] * 2),
    "iterated": lambda x: [x * n for n in x.shape[:2]],
}


def same(got, want):
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want)
    elif isinstance(want, (tuple, list)):
        assert type(got) is type(want) and len(got) == len(want)
        for one, other in zip(got, want):
            same(one, other)
    else:
        assert type(got) is type(want) and got == want


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_compile_serves_all_sizes(name):
    program = PROGRAMS[name]
    compiled = tenon.compile(program, fullgraph=True)
    for sizes in ((2, 9), (3, 9), (4, 11), (2, 12), (5, 13), (2, 9)):
        x = torch.randn(*sizes, 8)
        same(compiled(x), program(x))
    assert tenon.stats()["graphs"] <= 3 and tenon.stats()["eager_fallbacks"] == 0, tenon.stats()


def test_what_eager_refuses_is_refused():
    def run(x, other):
        return x.reshape(x.shape[:1] + other)

    compiled = tenon.compile(run)
    for n in (3, 5, 7):
        with pytest.raises(TypeError, match="can only concatenate tuple"):
            compiled(torch.ones(n), [1])
        same(compiled(torch.ones(n), (1,)), torch.ones(n, 1))


def test_a_table_of_positions_is_cut_to_the_length():
    table, width = torch.randn(1, 64, 8), torch.randn(64)

    def run(x):
        return x + table[:, : x.shape[1]] + width[: x.shape[2]]

    compiled = tenon.compile(run)
    for n in (9, 11, 12, 40, 64):
        x = torch.randn(2, n, 8)
        same(compiled(x), run(x))
    assert tenon.stats()["graphs"] == 2 and tenon.stats()["graph_breaks"] == 0, tenon.stats()
    with pytest.raises(RuntimeError, match="must match the size"):
        compiled(torch.randn(2, 65, 8))


def test_a_mask_has_the_length_of_the_keys():
    def run(x, mask):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask[:, None, None, :])

    compiled = tenon.compile(run, fullgraph=True)
    for b, n in ((2, 9), (3, 9), (4, 11), (2, 12), (5, 13)):
        x, mask = torch.randn(b, 4, n, 8), torch.randint(0, 2, (b, n)).bool()
        mask[:, 0] = True
        torch.testing.assert_close(compiled(x, mask), run(x, mask), rtol=1e-4, atol=1e-5)
    assert tenon.stats()["graphs"] <= 3 and tenon.stats()["eager_fallbacks"] == 0, tenon.stats()


def test_a_size_that_a_break_hands_on_varies():
    def fn(x):
        size = x[x > 0].shape
        return x[: size[0]] * 2, torch.zeros(size) + size[0]

    tenon.reset()
    compiled = tenon.compile(fn)
    for n in range(4, 20):
        x = torch.linspace(-1, 2, n)
        torch.testing.assert_close(compiled(x), fn(x))
    assert tenon.stats()["recompiles"] <= 3, tenon.stats()
