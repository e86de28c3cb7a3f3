"""options={"freeze": True}: parameters as constants, until somebody writes them."""
import copy

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):
    """Batch norms behind convolutions, in front of one, and behind one that others read too."""

    def __init__(self):
        super().__init__()
        self.first, self.norm1 = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.second, self.norm2 = torch.nn.Conv2d(8, 8, 3, groups=2, bias=False), torch.nn.BatchNorm2d(8, affine=False)
        self.norm3, self.third = torch.nn.BatchNorm2d(8), torch.nn.ConvTranspose2d(8, 4, 2)
        self.norm4, self.line = torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 5)

    def forward(self, x):
        x = self.second(torch.relu(self.norm1(self.first(x))))
        x = torch.relu(self.norm3(x + self.norm2(x)))
        return self.line(self.norm4(self.third(x)).mean((2, 3)))


def made(seed=0):
    torch.manual_seed(seed)
    net = Net().eval()
    for buffer in net.buffers():
        if buffer.is_floating_point():
            torch.nn.init.uniform_(buffer, 0.5, 2)
    return net


def agrees(compiled, net, x):
    """Compares with eager: no error larger than twice eager's own, or 4 ulp of the scale."""
    with torch.no_grad():
        judge, eager, ours = copy.deepcopy(net).double()(x.double()), net(x), compiled(x)
    bound = max(2 * float((eager - judge).abs().max()), 4 * np.finfo(np.float32).eps * float(judge.abs().max()))
    assert float((ours - judge).abs().max()) <= bound


def write_in_place(net):
    with torch.no_grad():
        net.first.weight.mul_(2)


def write_through_a_view(net):
    with torch.no_grad():
        net.second.weight[0].zero_()


def replace(net):
    net.first.weight = torch.nn.Parameter(torch.randn(8, 3, 3, 3))


def replace_data(net):
    net.line.weight.data = torch.randn(5, 4)


def load(net):
    net.load_state_dict(made(7).state_dict())


def train(net):
    with torch.no_grad():
        net.train()(torch.randn(4, 3, 9, 9))
    net.eval()


def step(net):
    net(torch.randn(2, 3, 9, 9)).sum().backward()
    torch.optim.SGD(net.parameters(), 0.1).step()
    net.zero_grad()


@pytest.mark.parametrize("write", [write_in_place, write_through_a_view, replace, replace_data, load, train, step])
def test_writes_are_seen(write):
    net, x = made(), torch.randn(2, 3, 9, 9)
    compiled = tenon.compile(net, options={"freeze": True})
    agrees(compiled, net, x)
    agrees(compiled, net, x)
    assert tenon.stats()["recompiles"] == 0
    write(net)
    agrees(compiled, net, x)
    agrees(compiled, net, x)
    stats = tenon.stats()
    assert (stats["recompiles"], stats["eager_fallbacks"]) == (1, 0), stats


def test_a_compiled_train_step_is_seen():
    net, x = made(), torch.randn(4, 3, 9, 9)
    compiled = tenon.compile(net, options={"freeze": True})
    twin = copy.deepcopy(net)
    agrees(compiled, net, x)
    for _ in range(2):
        with torch.no_grad():
            torch.testing.assert_close(compiled.train()(x), twin.train()(x), rtol=1e-4, atol=1e-4)
        net.eval(), twin.eval()
        agrees(compiled, net, x)
        torch.testing.assert_close(net.norm1.running_var, twin.norm1.running_var)


def test_recompiles_say_why(capfd):
    net, x = made(), torch.randn(1, 3, 9, 9)
    compiled = tenon.compile(net, options={"freeze": True})
    agrees(compiled, net, x)
    tenon.set_logs(recompiles=True)
    write_in_place(net)
    agrees(compiled, net, x)
    assert "first" in (text := capfd.readouterr().err) and "frozen at version" in text, text


def test_what_keeps_being_written_thaws(caplog):
    net, x = made(), torch.randn(1, 3, 9, 9)
    compiled = tenon.compile(net, options={"freeze": True, "recompile_limit": 3})
    for _ in range(8):
        agrees(compiled, net, x)
        write_in_place(net)
    stats = tenon.stats()
    assert (stats["recompiles"], stats["eager_fallbacks"]) == (3, 0), stats
    assert "inputs from now on" in caplog.text


def test_arguments_are_not_frozen():
    net = tenon.compile(lambda weight, x: torch.nn.functional.linear(x, weight), options={"freeze": True})
    x = torch.randn(3, 4)
    for weight in (torch.randn(5, 4), torch.randn(5, 4)):
        torch.testing.assert_close(net(weight, x), x @ weight.t())
        weight.zero_()
        assert not net(weight, x).any()
    assert tenon.stats()["recompiles"] == 0


def test_a_written_buffer_is_not_frozen():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.scale = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

        def forward(self, x):
            self.count += 1
            return x * self.scale + self.count

    net = Counter()
    compiled = tenon.compile(net, options={"freeze": True})
    with torch.no_grad():
        for i in range(1, 5):
            assert compiled(torch.ones(2)).tolist() == [2 + i, 3 + i]
    assert tenon.stats()["recompiles"] == 0


def test_modules_of_one_function_are_told_apart():
    nets, x = [made(1), made(2)], torch.randn(2, 3, 9, 9)
    run = tenon.compile(lambda net, x: net(x), options={"freeze": True})
    for _ in range(3):
        for net in nets:
            agrees(lambda x: run(net, x), net, x)
    assert tenon.stats()["recompiles"] == 1


def test_channels_last_weights():
    net, x = made().to(memory_format=torch.channels_last), torch.randn(2, 3, 9, 9)
    agrees(tenon.compile(net, options={"freeze": True}), net, x)


def test_memory_outlives_the_parameter():
    """What is frozen stays readable when the tensor is replaced while its program is still cached."""
    net, x = made(), torch.randn(2, 3, 9, 9)
    compiled = tenon.compile(net, options={"freeze": True})
    agrees(compiled, net, x)
    old = net.line.weight
    replace_data(net)
    agrees(compiled, net, x)
    net.line.weight = old
    agrees(compiled, net, x)


def test_bad_values_are_refused():
    with pytest.raises(tenon.ConfigError, match="freeze"):
        tenon.compile(torch.relu, options={"freeze": 1})


def test_a_frozen_parameter_that_needs_no_gradients_is_swapped_and_moved(check):
    """Its metadata are evaluated, not compared as words: what is compared of its memory must stand alone."""
    net, x = torch.nn.Linear(4, 4).requires_grad_(False), torch.randn(2, 4)
    compiled = tenon.compile(net, options={"freeze": True})
    with torch.no_grad():
        for _ in range(4):
            check.same(compiled(x), net(x))
        torch.utils.swap_tensors(net.weight, torch.nn.Parameter(torch.ones(4, 4), requires_grad=False))
        for _ in range(4):
            check.same(compiled(x), net(x))
        net.weight.set_(torch.arange(20.0), 4, (4, 4))
        for _ in range(4):
            check.same(compiled(x), net(x))
