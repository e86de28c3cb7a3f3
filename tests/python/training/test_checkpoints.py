"""torch.utils.checkpoint in compiled models and in whole steps: one graph, with what torch gives, and does again."""
import functools

import pytest

import tenon

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils import checkpoint as library  # noqa: E402
from torch.utils.checkpoint import checkpoint, checkpoint_sequential  # noqa: E402

D = torch.float64


class Blocks(nn.Module):
    """Residual blocks, each of them checkpointed by `run`."""

    def __init__(self, run, *extra):
        super().__init__()
        self.entry, self.exit = nn.Linear(4, 6, dtype=D), nn.Linear(6, 3, dtype=D)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6, dtype=D), *(make() for make in extra), nn.GELU()) for _ in range(3))
        self.run = run

    def forward(self, x):
        x = self.entry(x)
        for block in self.blocks:
            x = x + self.run(block, x)
        return self.exit(x)


def norm():
    return nn.BatchNorm1d(6, dtype=D)


def drop():
    return nn.Dropout(0.4)


class Sequential(Blocks):
    def forward(self, x):
        return self.exit(checkpoint_sequential(nn.Sequential(*self.blocks), 2, self.entry(x), use_reentrant=self.run.keywords["use_reentrant"]))


class Counting(nn.Module):
    """Counts how often it is called, in a list that is older than the step."""

    calls = []

    def forward(self, x):
        Counting.calls.append(1)
        return x.sin()


def trained(make, level, steps=4):
    """All that four steps of training leave: losses, parameters, gradients, buffers, and what the generator gives next."""
    torch.manual_seed(0)
    net = make()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    model = tenon.compile(net) if level == "model" else net

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = tenon.compile(step) if level == "step" else step
    losses = [run(torch.randn(5, 4, dtype=D), torch.randint(0, 3, (5,))).detach() for _ in range(steps)]
    return [losses, *([t if t is None else t.clone() for t in ts] for ts in (net.parameters(), (p.grad for p in net.parameters()), net.buffers())), torch.rand(2)]


def compare(make, level):
    want = trained(make, None)
    before = tenon.stats()
    got = trained(make, level)
    torch.testing.assert_close(got, want)
    return tuple(tenon.stats()[name] - before[name] for name in ("graphs", "graph_breaks", "eager_fallbacks"))


def reentrant(yes, **more):
    return functools.partial(checkpoint, use_reentrant=yes, **more)


ONE_GRAPH = {"model": (1, 0, 0), "step": (2, 0, 0)}  # a step makes the optimizer's state first


@pytest.mark.parametrize("level", ONE_GRAPH)
@pytest.mark.parametrize("yes", [True, False], ids=["reentrant", "not reentrant"])
@pytest.mark.parametrize("make", [Blocks, lambda run: Blocks(run, drop), Sequential], ids=["plain", "dropout", "sequential"])
def test_one_graph(make, yes, level):
    assert compare(lambda: make(reentrant(yes)), level) == ONE_GRAPH[level]


@pytest.mark.parametrize("yes", [True, False], ids=["reentrant", "not reentrant"])
@pytest.mark.parametrize("extra", [(norm,), (norm, drop), (drop, norm)], ids=["norm", "norm and dropout", "dropout and norm"])
def test_what_is_written_is_written_again(extra, yes):
    assert compare(lambda: Blocks(reentrant(yes), *extra), "step") == ONE_GRAPH["step"]


@pytest.mark.parametrize("level", ONE_GRAPH)
def test_only_what_is_kept_is_chosen(level):
    chosen = functools.partial(library.create_selective_checkpoint_contexts, lambda ctx, op, *args, **kwargs: library.CheckpointPolicy.PREFER_RECOMPUTE)
    assert compare(lambda: Blocks(reentrant(False, context_fn=chosen), drop), level) == ONE_GRAPH[level]


@pytest.mark.parametrize("level", ONE_GRAPH)
@pytest.mark.parametrize("yes", [True, False], ids=["reentrant", "not reentrant"])
@pytest.mark.parametrize("make", [
    lambda run: Blocks(functools.partial(run, preserve_rng_state=False), drop),
    lambda run: Blocks(run, norm, Counting),
    lambda run: Blocks(run, Counting, drop),
    lambda run: Blocks(lambda block, x: run(lambda y: run(block, y), x), norm),
], ids=["other numbers the second time", "counting", "counting and dropout", "one in another"])
def test_what_torch_does_again_is_done_again(make, yes, level):
    calls = []
    for each in (None, level):
        Counting.calls = []
        result = trained(lambda: make(reentrant(yes)), each)
        calls.append((len(Counting.calls), result))
    assert calls[0][0] == calls[1][0]
    torch.testing.assert_close(calls[1][1], calls[0][1])


def test_early_stop_ends_before_a_write():
    """torch evaluates a part again only until it has all that it keeps."""

    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.entry, self.layer = nn.Linear(4, 6, dtype=D), nn.Linear(6, 3, dtype=D)
            self.register_buffer("seen", torch.zeros((), dtype=D))

        def part(self, x):
            y = self.layer(x).sin()
            with torch.no_grad():
                self.seen += 1
            return y

        def forward(self, x):
            return checkpoint(self.part, self.entry(x), use_reentrant=False)

    torch.testing.assert_close(trained(Counted, "step"), trained(Counted, None))


def test_a_reentrant_part_refuses_gradients_by_name():
    layer = nn.Linear(3, 3, dtype=D)
    x = torch.ones(2, 3, dtype=D, requires_grad=True)

    def slope(x):
        return torch.autograd.grad(checkpoint(layer, x * 2, use_reentrant=True).sum(), x)

    for fn in (slope, tenon.compile(slope)):
        with pytest.raises(RuntimeError, match="When use_reentrant=True"):
            fn(x)


def test_without_gradients(check):
    layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    for yes in (True, False):
        with torch.no_grad():
            torch.manual_seed(1)
            want = checkpoint(layer, torch.ones(2, 3), use_reentrant=yes)
            torch.manual_seed(1)
            compiled = tenon.compile(lambda x, yes=yes: checkpoint(layer, x, use_reentrant=yes))
            torch.testing.assert_close(compiled(torch.ones(2, 3)), want)
    assert tenon.stats()["graph_breaks"] == 0


@pytest.mark.parametrize("yes", [True, False], ids=["reentrant", "not reentrant"])
@pytest.mark.parametrize("level", ONE_GRAPH)
def test_hooks_of_leaves_in_a_part_are_called_as_often(level, yes):
    """A reentrant part walks to its leaves by itself, each time that it is used."""

    class Repeating(Blocks):
        def forward(self, x):
            x = self.entry(x)
            for _ in range(3):
                x = x + self.run(self.blocks[0], x)
            return self.exit(x)

    found = []
    for each in (None, level):
        seen = []

        def make(seen=seen):
            net = Repeating(reentrant(yes))
            net.blocks[0][0].weight.register_hook(lambda g: seen.append(g.sum()))
            return net

        found.append((trained(make, each), seen))
    torch.testing.assert_close(found[1], found[0])


def test_autocast_of_a_part_is_there_the_second_time():
    def run(block, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return checkpoint(block, x, use_reentrant=False)

    def make():
        net = Blocks(run, lambda: nn.BatchNorm1d(6)).float()
        net.entry = nn.Sequential(Single(), net.entry)
        return net

    class Single(nn.Module):
        def forward(self, x):
            return x.float()

    want, got = trained(make, None), trained(make, "step")
    torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)
    assert tenon.stats()["graph_breaks"] == 0
