"""Philox's published answer, and the op against what torch's operator of ours computes."""
import pytest

import tenon

torch = pytest.importorskip("torch")
from tenon import _philox  # noqa: E402


def test_the_published_block():
    words = torch.tensor([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])  # counter 0, key 0 (Random123's kat_vectors)
    want = words.float() * 2.0**-32 + 2.0**-33
    zero = torch.zeros((), dtype=torch.int64)
    draw = lambda s, o: torch.ops.tenon.philox_uniform.default(s, o, [4], 256, 4)  # noqa: E731
    assert torch.equal(draw(zero, zero), want)
    assert torch.equal(tenon.compile(draw)(zero, zero), want)


@pytest.mark.parametrize("vector", [1, 2, 4, 8])
@pytest.mark.parametrize("seed,offset", [(0, 0), (-1, 5), (0x123456789ABCDEF, 0xFFFFFFFF), (42, -1)], ids=str)
def test_numbers(vector, seed, offset):
    fn = tenon.compile(lambda s, o: torch.ops.tenon.philox_uniform.default(s, o, [3, 400], 16, vector))
    got = fn(torch.tensor(seed), torch.tensor(offset))
    assert torch.equal(got, _philox._uniform_at(torch.arange(1200), seed, offset, 16, vector).reshape(3, 400))
    assert tenon.stats()["graph_breaks"] == 0 and got.min() > 0 and got.max() <= 1
