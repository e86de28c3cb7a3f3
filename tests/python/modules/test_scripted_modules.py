"""Scripted and traced modules and functions of torch are called as they are."""
import io

import pytest

import tenon

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.ones(2, 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.factor = 2
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        return self.linear(x) * self.factor + self.shift

    @torch.jit.export
    def other(self, x):
        return x + self.factor


torch.manual_seed(0)
NET = Net().eval()
SCRIPTED, TRACED = torch.jit.script(NET), torch.jit.trace(NET, X)


@torch.jit.script
def stepped(x, n: int):
    for i in range(n):
        x = x + i
    return x, x * 2


@torch.jit.script
def written(x):
    x.add_(1)
    return x


def loaded():
    file = io.BytesIO()
    torch.jit.save(SCRIPTED, file)
    file.seek(0)
    return torch.jit.load(file)


def write(x):
    y = x * 1
    written(y)
    return y


USES = {
    "a scripted module": SCRIPTED, "a traced module": TRACED, "one that was loaded": loaded(), "a frozen one": torch.jit.freeze(torch.jit.script(NET)), "one for inference": torch.jit.optimize_for_inference(torch.jit.script(NET)),
    "a traced function": torch.jit.trace(lambda x: x * 2 + 1, X), "inside a function": lambda x: SCRIPTED(x) + TRACED(x), "inside a module": nn.Sequential(SCRIPTED, nn.ReLU(), TRACED), "a part": lambda x: SCRIPTED.linear(x), "a method": lambda x: SCRIPTED.other(x) * 2,
    "a bound method": SCRIPTED.other, "forward": SCRIPTED.forward, "a function": lambda x: stepped(x, 3)[1], "by name": lambda x: SCRIPTED(x=x), "attributes": lambda x: x * SCRIPTED.factor + SCRIPTED.shift + SCRIPTED.linear.weight.sum(), "a write": write,
    "questions": lambda x: (isinstance(SCRIPTED, nn.Module), hasattr(SCRIPTED, "missing"), SCRIPTED.training, callable(stepped), sorted(SCRIPTED.state_dict()), [n for n, _ in SCRIPTED.named_modules()], x + 1),
}


@pytest.mark.parametrize("name", USES)
def test_a_use(name, as_plain):
    def scenario(compile):
        with torch.no_grad():
            fn = compile(USES[name])
            return [fn(X), fn(X), fn(X * 2)]

    as_plain(scenario)


def test_what_is_changed_between_calls(as_plain):
    def scenario(compile):
        net = torch.jit.script(Net().eval())
        with torch.no_grad():
            net.linear.weight.fill_(1.0)
            net.linear.bias.fill_(0.0)
            fn, read = compile(net), compile(lambda x: x * net.factor)
            seen = [fn(X), read(X)]
            net.linear.weight.mul_(2)
            net.factor = 7
            return [*seen, fn(X), read(X)]

    as_plain(scenario)


@pytest.mark.parametrize("given", [torch.ones(2, 7), "text", None])
def test_errors_are_those_of_the_module(given):
    with pytest.raises(Exception) as plain:
        SCRIPTED(given)
    with pytest.raises(type(plain.value)):
        tenon.compile(SCRIPTED)(given)
