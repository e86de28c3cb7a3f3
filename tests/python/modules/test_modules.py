"""torch.nn.Module: a compiled module stays a module."""
import copy
import pickle

import pytest

import tenon

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(8, 4)
        self.act = torch.nn.ReLU()

    def forward(self, x):
        return self.act(self.lin(x))


def test_a_compiled_module_is_the_module(check):
    net, x = Net(), torch.randn(3, 8)
    compiled = tenon.compile(net)
    with torch.no_grad():
        check.same(compiled(x), net(x))
    assert tenon.stats()["eager_fallbacks"] == 0
    assert list(compiled.state_dict()) == list(net.state_dict())
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in net.parameters()]
    assert isinstance(compiled, torch.nn.Module) and compiled.lin is net.lin
    assert compiled.eval() is compiled and not net.training


def test_parameters_are_read_at_each_call(check, graphs):
    net, x = Net().eval(), torch.randn(3, 8)
    compiled = tenon.compile(net, backend=graphs)
    with torch.no_grad():
        compiled(x)
        for p in net.parameters():
            p.mul_(2)
        check.same(compiled(x), net(x))
        net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()})
        check.same(compiled(x), net(x))
    assert len(graphs.seen) == 1 and tenon.stats()["eager_fallbacks"] == 0


def test_changed_structure_is_seen(check):
    net, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), torch.randn(2, 4)
    compiled = tenon.compile(net)
    with torch.no_grad():
        check.same(compiled(x), net(x))
        net[1] = torch.nn.Tanh()
        check.same(compiled(x), net(x))
        net.append(torch.nn.Linear(4, 2))
        check.same(compiled(x), net(x))
        net[0].weight = torch.nn.Parameter(torch.zeros(4, 4))
        check.same(compiled(x), net(x))


def test_gradients_are_eagers(check):
    net, x = Net(), torch.randn(3, 8)
    twin = copy.deepcopy(net)
    tenon.compile(net)(x).square().sum().backward()
    twin(x).square().sum().backward()
    for p, q in zip(net.parameters(), twin.parameters()):
        check.same(p.grad, q.grad)


def test_hooks_run():
    net, x, seen = Net(), torch.randn(3, 8), []
    net.lin.register_forward_hook(lambda m, i, o: seen.append(tuple(o.shape)))
    compiled = tenon.compile(net)
    with torch.no_grad():
        compiled(x), compiled(x)
    assert seen == [(3, 4), (3, 4)]


def test_hooks_that_are_always_called_see_a_forward_that_raises():
    class Raises(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    def run(module):
        seen.clear()
        with pytest.raises(ValueError, match="no"):
            module(torch.ones(2))
        return list(seen)

    seen = []
    module = Raises()
    module.register_forward_hook(lambda owner, args, result: seen.append((len(args), result)), always_call=True)
    compiled = tenon.compile(module)
    with torch.no_grad():
        assert run(compiled) == run(compiled) == run(module) == [(1, None)]


def test_digits_like_network(check):
    net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 10), torch.nn.Softmax(-1)).eval()
    with torch.no_grad():
        check(net, (torch.randn(7, 64),))


def test_copies_and_pickles(check):
    net, x = Net(), torch.randn(3, 8)
    compiled = tenon.compile(net)
    twin = copy.deepcopy(compiled)
    assert twin.lin.weight is not net.lin.weight
    loaded = pickle.loads(pickle.dumps(compiled))
    assert isinstance(loaded, Net) and type(loaded) is type(compiled)
    with torch.no_grad():
        check.same(twin(x), net(x))
        check.same(loaded(x), net(x))


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "other"])
def test_an_encoder_takes_a_mask_without_a_break(causal):
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5) if causal else torch.zeros(5, 5).fill_diagonal_(-2.0)
    compiled, x = tenon.compile(encoder), torch.randn(2, 5, 8)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x, mask=mask), encoder(x, mask=mask))
        torch.testing.assert_close(compiled(x, mask=mask * 0), encoder(x, mask=mask * 0))
    assert tenon.stats()["graph_breaks"] == 0


def test_an_encoder_leaves_zeros_in_padded_places():
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    padding = torch.tensor([[False, False, True], [False, True, True]])
    compiled, x = tenon.compile(encoder), torch.randn(2, 3, 8)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(compiled(x, src_key_padding_mask=padding), encoder(x, src_key_padding_mask=padding))


def test_parameters_are_copied_as_parameters():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).eval()
    x = torch.ones(4, 3)

    def fn(net, x):
        twin = copy.deepcopy(net)
        with torch.no_grad():
            return twin, twin(x) + 1

    compiled = tenon.compile(fn)
    for _ in range(2):
        twin, y = compiled(net, x)
        torch.testing.assert_close(y, net(x) + 1)
        for ours, theirs in zip(twin.parameters(), net.parameters(), strict=True):
            assert type(ours) is torch.nn.Parameter and ours.requires_grad and ours.data_ptr() != theirs.data_ptr()
            torch.testing.assert_close(ours, theirs)
