"""What a device draws by kernels of ours: the bits that a generator's state says, and the state that is left."""
import math
import sys

import pytest
import torch
import torch.nn.functional as F
from tenon import _philox

import tenon

SEED = 0x9E3779B97F4A7C15  # beyond int64
BLOCKS = 2  # that a mock device holds, so that threads draw several times


class Counter:
    """A generator of the mock device."""

    def __init__(self):
        self.seed, self.offset = SEED, 8

    def initial_seed(self):
        return self.seed

    def get_offset(self):
        return self.offset

    def set_offset(self, offset):
        self.offset = offset


@pytest.fixture
def generator(device, monkeypatch):
    """That of the device; of a mock one which draws like a card."""
    if device.startswith("cuda"):
        torch.cuda.init()
        torch.cuda.manual_seed(SEED)
        return torch.cuda.default_generators[torch.device(device).index]
    counter = Counter()
    functions = _philox.functions_on(torch.device(device), BLOCKS)
    monkeypatch.setattr(_philox, "generator_of", lambda card: counter)
    monkeypatch.setattr(_philox, "function_on", lambda card, name: functions.get(name) if card.type == "mock" else None)
    return counter


def blocks_of(device):
    if not device.startswith("cuda"):
        return BLOCKS
    card = torch.cuda.get_device_properties(device)
    return card.multi_processor_count * (card.max_threads_per_multi_processor // 256)


def drawn(count, vector, offset, most):
    """Uniform numbers, and how far the generator is moved."""
    threads = 256 * min(most, math.ceil(count / 256))
    numbers = _philox._uniform_at(torch.arange(count), SEED, offset // 4, threads, vector)
    return numbers, 4 * math.ceil(count / (4 * threads))


@pytest.mark.parametrize("shape", [(1,), (7, 11), (32, 64), (2001,)], ids=str)
def test_uniform_numbers(device, generator, shape):
    fn = tenon.compile(lambda x: (torch.rand_like(x), torch.rand(shape, device=x.device) + x))
    x = torch.zeros(shape, device=device)
    for _ in range(2):
        offset = generator.get_offset()
        first, second = fn(x)
        numbers, step = drawn(math.prod(shape), 1, offset, blocks_of(device))
        assert torch.equal(first.cpu(), numbers.masked_fill(numbers == 1, 0).reshape(shape))
        numbers, step = drawn(math.prod(shape), 1, offset + step, blocks_of(device))
        assert torch.equal(second.cpu(), numbers.masked_fill(numbers == 1, 0).reshape(shape))
        assert generator.get_offset() == offset + 2 * step
    assert tenon.stats()["graph_breaks"] == 0, tenon.stats()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("count", [1, 6, 4096, 4097, 5002], ids=str)
def test_dropout(device, generator, dtype, count):
    x = torch.randn(count).to(device, dtype)
    fn = tenon.compile(lambda x: F.dropout(x, 0.3))
    for _ in range(2):
        offset = generator.get_offset()
        result = fn(x)
        numbers, step = drawn(count, _philox._vector_for(count, dtype.itemsize), offset, blocks_of(device))
        assert torch.equal(result.cpu(), x.cpu() * (numbers < 0.7) * _philox.scale_of(0.3))
        assert generator.get_offset() == offset + step
    assert tenon.stats()["graph_breaks"] == 0, tenon.stats()


def test_gradients_of_dropout(device, generator):
    net = tenon.compile(lambda x: (F.dropout(x * 2, 0.4) * x).sum())
    x = torch.randn(32, 32, device=device, requires_grad=True)
    offset = generator.get_offset()  # torch has drawn x on a card
    numbers, step = drawn(1024, 4, offset, blocks_of(device))
    net(x).backward()
    torch.testing.assert_close(x.grad.cpu(), 4 * x.detach().cpu() * (numbers < 0.6).reshape(32, 32) * _philox.scale_of(0.4))
    assert generator.get_offset() == offset + step


def test_dropout_of_what_lies_otherwise_is_torchs(device, generator):
    calls = []
    functions = dict(_philox.functions_on(torch.device(device), blocks_of(device)))
    for fn in (lambda x: F.dropout(x.t(), 0.5), lambda x: F.dropout(x, 0.5, training=False), lambda x: F.dropout(x, 1.0)):
        offset = generator.get_offset()
        result = tenon.compile(fn)(torch.ones(3, 4, device=device))
        calls.append((result.sum().item(), generator.get_offset() - offset))
    assert calls[1] == (12.0, 0) and calls[2] == (0.0, 0)
    assert functions["dropout"](torch.ones(4, 3, device=device).t(), 0.5, True) is NotImplemented


def test_sizes_that_vary(device, generator):
    fn = tenon.compile(lambda x: F.dropout(x, 0.5))
    for rows in (3, 4, 5, 300, 6, 700):
        offset = generator.get_offset()
        result = fn(torch.ones(rows, 8, device=device))
        numbers, step = drawn(rows * 8, 4, offset, blocks_of(device))
        assert torch.equal(result.cpu(), (numbers < 0.5).reshape(rows, 8) * 2.0)
        assert generator.get_offset() == offset + step


def test_a_call_that_torch_captures_is_left_to_it(device, generator, monkeypatch):
    fn = tenon.compile(lambda x: F.dropout(x, 0.5) + 1)
    x = torch.ones(64, device=device)
    fn(x)
    offset = generator.get_offset()
    monkeypatch.setattr(_philox, "is_capturing", lambda: True)
    if not device.startswith("cuda"):
        fn(x)  # by torch's own generator of the mock device
        assert generator.get_offset() == offset
    monkeypatch.undo()


def test_what_begins_between_vectors_is_left_to_torch(device, generator):
    fn = tenon.compile(lambda x: F.dropout(x, 0.5))
    base = torch.ones(65, device=device)
    fn(base[:64])
    offset = generator.get_offset()
    if device.startswith("cuda"):
        torch.cuda.manual_seed(1)
        got = fn(base[1:])
        torch.cuda.manual_seed(1)
        assert torch.equal(got, F.dropout(base[1:], 0.5))
    else:
        fn(base[1:])
        assert generator.get_offset() == offset  # torch has a generator of its own for the mock device


def test_a_draw_runs_no_python_of_ours(device, generator):
    fn = tenon.compile(lambda x: F.dropout(F.dropout(x, 0.5), 0.25))
    x = torch.ones(64, device=device)
    fn(x)
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" and frame.f_code.co_filename == _philox.__file__ else None)
    try:
        offset = generator.get_offset()
        fn(x)
    finally:
        sys.setprofile(None)
    assert called == ["is_capturing"] and generator.get_offset() == offset + 8
