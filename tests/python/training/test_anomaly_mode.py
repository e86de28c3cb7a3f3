"""Anomaly mode looks at each node of torch's autograd graph: what it raises, compiled steps and functions raise."""
import pytest

import tenon

torch = pytest.importorskip("torch")


class Step:
    """Gradients that are no number: 0 times infinity."""

    def __init__(self):
        self.weight = torch.ones(3, requires_grad=True)
        self.optimizer = torch.optim.SGD([self.weight], lr=0.1)

    def loss(self, x):
        return (self.weight * x * 0).sqrt().sum()

    def whole(self, x):
        self.optimizer.zero_grad()
        loss = self.loss(x)
        loss.backward()
        self.optimizer.step()
        return loss

    def look_inside(self, x):
        with torch.autograd.set_detect_anomaly(True):
            return self.whole(x)


X = torch.ones(3)


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected")
@pytest.mark.parametrize("compiled_before", [False, True])
def test_a_whole_step_raises(compiled_before):
    step = Step()
    compiled = tenon.compile(step.whole)
    if compiled_before:
        for _ in range(3):
            compiled(X)
        step.weight.data.fill_(1)
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values"):
        compiled(X)
    assert torch.equal(step.weight, torch.ones(3)) and not torch.is_anomaly_enabled()
    compiled(X)
    assert step.weight.isnan().all()


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected")
def test_a_step_that_asks_for_it_raises():
    step = Step()
    with pytest.raises(RuntimeError, match="returned nan values"):
        tenon.compile(step.look_inside)(X)
    assert torch.equal(step.weight, torch.ones(3)) and not torch.is_anomaly_enabled()


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected")
def test_a_function_in_the_programs_loop_raises():
    step = Step()
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values"):
        tenon.compile(step.loss)(X).backward()


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_numbers_pass():
    step = Step()
    step.loss = lambda x: (step.weight * x).sqrt().sum()
    with torch.autograd.detect_anomaly():
        tenon.compile(step.whole)(X)
    assert torch.equal(step.weight, torch.full((3,), 1 - 0.1 * 0.5))
