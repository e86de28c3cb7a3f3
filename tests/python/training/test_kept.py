"""What is kept for gradients from the call to the backward: no more than plain execution keeps, and what is told of it."""
import pytest

import tenon

torch = pytest.importorskip("torch")
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402


def kept_plainly(fn, *args, held):
    """Bytes that torch's nodes keep beside tensors that the program has."""
    known, kept = {t.untyped_storage().data_ptr() for t in held}, {}

    def note(tensor):
        memory = tensor.untyped_storage()
        if memory.data_ptr() not in known:
            kept[memory.data_ptr()] = memory.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        result = fn(*args)
    result.backward()
    return sum(kept.values())


def perceptron():
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Sigmoid(), nn.Linear(32, 4)), torch.randn(16, 8)


def convolutions():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()), torch.randn(2, 3, 12, 12)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.project, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.project(self.norm(x)).chunk(3, -1)
        return x + self.out(F.gelu(F.softmax(q @ k.transpose(-1, -2), -1) @ v))


@pytest.mark.parametrize("network", [perceptron, convolutions, lambda: (Attention(), torch.randn(2, 8, 16))])
def test_no_more_is_kept_than_plainly(network):
    torch.manual_seed(0)
    model, x = network()
    loss = lambda x: model(x).pow(2).mean()  # noqa: E731
    plain = kept_plainly(loss, x, held=[x, *model.parameters(), *model.buffers()])
    report = tenon.explain(loss)(x)
    assert report.graph_count == 1
    assert 0 < sum(b.kept_bytes for b in report.backwards) <= plain


def test_what_is_kept_is_told(capfd):
    tenon.set_logs(autodiff=True)
    try:
        x = torch.randn(3, 3, requires_grad=True)
        tenon.compile(lambda x: torch.tanh(x @ x).exp())(x).sum().backward()
    finally:
        tenon.set_logs()
    told = capfd.readouterr().err
    assert "tenon: a backward of " in told and " keeps 36 bytes" in told
    assert "an input, which the program has" in told
    assert "graph @main_backward" in told
    report = tenon.explain(lambda x: torch.tanh(x @ x).exp())(x)
    assert len(report.backwards) == 1 and "Backward 1: keeps" in str(report)
