"""What layers of torch.nn compute by one function of C where no gradient is wanted: its parts are in the graph."""
import pytest

import tenon

torch = pytest.importorskip("torch")


def compare(net, *args, opaque=0, **keywords):
    net = net.eval()
    compiled = tenon.compile(lambda *a: net(*a, **keywords), fullgraph=True)
    with torch.no_grad():
        for _ in range(2):
            got, want = compiled(*args), net(*args, **keywords)
            for one, other in zip(*((got, want) if isinstance(want, tuple) else ((got,), (want,)))):
                assert (one is None) == (other is None)
                if other is not None:
                    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
                    assert one.stride() == other.stride()
    assert tenon.stats()["opaque_nodes"] == opaque, tenon.stats()


@pytest.mark.parametrize("keywords", [{}, {"need_weights": False}, {"average_attn_weights": False}], ids=["averaged", "none", "by head"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_attention_of_several_heads(keywords, dtype):
    x = torch.randn(3, 7, 12, dtype=dtype)
    compare(torch.nn.MultiheadAttention(12, 4, batch_first=True, dtype=dtype), x, x, x, **keywords)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layer_of_an_encoder(norm_first, activation):
    compare(torch.nn.TransformerEncoderLayer(12, 2, 20, batch_first=True, norm_first=norm_first, activation=activation), torch.randn(3, 7, 12))


def test_padded_places_are_left_to_torch():
    mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    compare(torch.nn.TransformerEncoderLayer(12, 2, 20, batch_first=True), torch.randn(2, 5, 12), src_key_padding_mask=mask, opaque=1)


def test_an_encoder_over_several_sizes():
    net = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(12, 2, 20, batch_first=True), 2).eval()
    compiled = tenon.compile(net, fullgraph=True)
    with torch.no_grad():
        for batch, length in ((2, 5), (3, 5), (4, 6), (7, 9)):
            x = torch.randn(batch, length, 12)
            torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-5)
    assert tenon.stats()["graphs"] <= 3
