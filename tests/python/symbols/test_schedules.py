"""Floats that Python computes from call to call: learning rates and their schedules, guarded decisions about them."""

import math

import pytest

import tenon

torch = pytest.importorskip("torch")

X = torch.linspace(-2, 2, 24).reshape(4, 6)
SCHEDULES = {
    "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5),
    "exponential": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "lambda": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.95**epoch),
    "one_cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=30),
}
# Those that take several paths, each of which is captured.
SCHEDULES_WITH_PATHS = {
    "cyclic": lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=4),
    "cyclic_range": lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=3, mode="exp_range", gamma=0.99),
    "warm_restarts": lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 7),
    "three_phases": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=50, three_phase=True),
    "milestones": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [10, 20]),
    "sequential": lambda o: torch.optim.lr_scheduler.SequentialLR(
        o, [torch.optim.lr_scheduler.LinearLR(o, 0.1, 1.0, 10), torch.optim.lr_scheduler.CosineAnnealingLR(o, 20)], milestones=[10]
    ),
}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
    "sgd_each": lambda p: torch.optim.SGD(p, lr=0.02, foreach=False),
    "adam": lambda p: torch.optim.Adam(p, lr=0.02),
    "adam_each": lambda p: torch.optim.Adam(p, lr=0.02, foreach=False),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.02, foreach=True),
}


def train(optimizer, schedule, inside, compiled, steps=8):
    """Parameters and learning rates after some steps, and the captures of each."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    opt = OPTIMIZERS[optimizer](model.parameters())
    scheduler = (SCHEDULES | SCHEDULES_WITH_PATHS)[schedule](opt)

    def step():
        opt.step()
        if inside:
            scheduler.step()

    run = tenon.compile(step, fullgraph=True) if compiled else step
    rates, captures = [], []
    for i in range(steps):
        opt.zero_grad()
        (model(X[:, :4] / (i + 4)) ** 2).sum().backward()
        before = tenon.stats()["graphs"]
        run()
        captures.append(tenon.stats()["graphs"] - before)
        if not inside:
            scheduler.step()
        rates.append(scheduler.get_last_lr())
    return [p.detach() for p in model.parameters()], rates, captures


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_learning_rate_that_is_scheduled_varies(optimizer, schedule, inside):
    tenon.reset()
    want, want_rates, _ = train(optimizer, schedule, inside, False)
    got, rates, captures = train(optimizer, schedule, inside, True)
    torch.testing.assert_close(got, want)
    assert rates == want_rates  # bit by bit
    assert sum(captures) <= 4 and not any(captures[4:]), captures


@pytest.mark.parametrize("schedule", SCHEDULES_WITH_PATHS)
def test_a_schedule_is_captured_once_a_path(schedule):
    tenon.reset()
    want, want_rates, _ = train("sgd", schedule, True, False, 48)
    got, rates, captures = train("sgd", schedule, True, True, 48)
    torch.testing.assert_close(got, want)
    assert rates == want_rates
    assert sum(captures) <= 8 and not any(captures[36:]), captures


def calls(fn, arguments, most, **options):
    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True, **options)
    for args in arguments:
        got, want = compiled(*args), fn(*args)
        assert type(got) is type(want)
        if isinstance(want, tuple):
            assert [type(each) for each in got] == [type(each) for each in want]
            assert all(a == b or (a != a and b != b) for a, b in zip(got, want, strict=True)), (got, want)
        else:
            torch.testing.assert_close(got, want, rtol=0, atol=0)
    assert tenon.stats()["recompiles"] + 1 <= most, tenon.stats()


def test_arithmetic_of_floats_that_vary_is_python_s():
    values = [0.3, 0.7, 1.9, -2.5, 3.25, -0.0, 1e-9, 123456.789]
    calls(lambda s: (s * 3 + 0.1, s / 7, s // 0.3, s % 0.3, s // -1.5, s % -1.5, -s, abs(s), 2 - s, s**2, s - 1), [(s,) for s in values], 2)
    calls(lambda s: (math.sin(s), math.cos(s), math.exp(s / 1e6), math.atan(s), math.sqrt(abs(s)), math.tanh(s)), [(s,) for s in values], 2)
    calls(lambda s: (min(s, 1.0), max(s, 0.5, 2.0), float(s)), [(s,) for s in values], 2)
    calls(lambda n: (n / 3, float(n), n * 0.1, n // 0.7, n % 0.7, math.sqrt(n), math.cos(math.pi * n / 10)), [(n,) for n in range(2, 12)], 2)


def test_a_float_that_is_computed_is_an_input_of_the_graph():
    calls(lambda x, s, n: x * (1 + math.cos(math.pi * n / 10)) * s / (s + 3), [(X, 0.1 * n, n) for n in range(2, 9)], 2)


def test_ints_made_of_floats_that_vary():
    values = [2.5, 3.5, 4.7, 9.0, 100.25, 5.5, 2.0**52]
    calls(lambda s: (math.floor(s), math.ceil(s), math.trunc(s), int(s), round(s), round(s, None)), [(s,) for s in values], 2)
    calls(lambda s: (math.floor(s), math.ceil(s), math.trunc(s), int(s), round(s)), [(-s,) for s in values], 2)
    calls(lambda n: (int(n * 0.5), round(n * 0.3), math.floor(n), math.ceil(n), math.trunc(n), round(n), int(n), float(n)), [(n,) for n in range(10, 30)], 2)
    calls(lambda s: int(s) * 3 // int(s / 2), [(s,) for s in (4.5, 6.0, 19.2, 7.1)], 2)
    rows = torch.arange(120.0).reshape(40, 3)
    calls(lambda x, r: x[: math.ceil(x.shape[0] * r)] * int(x.shape[0] * 0.5), [(rows[:n], 0.5 + n / 100) for n in range(10, 30)], 2)
    calls(lambda x: x[: int(x.shape[0] * 0.5)] * 2, [(rows[:n],) for n in range(10, 30)], 1, dynamic=True)
    for function in (math.floor, int, round):
        compiled = tenon.compile(function)
        for s in (2.5, 3.5, 2.0**60, 1e17, 5.5, 0.5, -0.0):
            assert compiled(s) == function(s)
        for s, error in ((float("inf"), OverflowError), (float("nan"), ValueError)):
            with pytest.raises(error):
                compiled(s)


def test_a_comparison_of_floats_makes_one_variant_an_outcome():
    values = [0.3, 0.4, 1.9, 2.5, 0.7, 3.25, 0.2]
    calls(lambda x, s: x * s if s * 2 > 1 else x - s, [(X, s) for s in values], 3)
    calls(lambda x, n: x * 2 if n < 3.5 else x + n, [(X, n) for n in range(2, 9)], 3)
    calls(lambda x, s: x * 2 if s else x, [(X, s) for s in (*values, 0.0, 0.5, 0.0)], 3)
    calls(lambda s: (min(1, s), max(0, s), s == None, s == "s"), [(s,) for s in (*values, -1.5, -2.5, float("nan"))], 5)  # noqa: E711


def test_what_gives_no_float_raises_as_in_eager():
    for fn, good, bad, error in [
        (lambda x, s: x / (1.5 / s), 2.0, 0.0, ZeroDivisionError), (lambda x, s: x * (1.5 % s), 2.0, 0.0, ZeroDivisionError),
        (lambda x, s: x * math.sqrt(s), 2.0, -1.0, ValueError), (lambda x, s: x * math.exp(s), 2.0, 1e6, OverflowError),
    ]:
        compiled = tenon.compile(fn)
        for s in (good, good + 1, good + 2, bad, good + 3, bad):
            if s != bad:
                torch.testing.assert_close(compiled(X, s), fn(X, s))
                continue
            with pytest.raises(error):
                compiled(X, s)


def test_a_negative_float_to_a_fraction_is_complex():
    compiled = tenon.compile(lambda s: s**0.5)
    for s in (2.0, 3.0, 4.0, -4.0, 5.0):
        assert compiled(s) == s**0.5


def test_a_slice_of_numbers_that_vary():
    class State:
        betas = (0.9, 0.99)

    state = State()
    state.betas = (0.9, 0.99)

    def fn(x):
        state.betas = (state.betas[0] * 0.9, *state.betas[1:])
        return x * state.betas[0]

    tenon.reset()
    compiled = tenon.compile(fn, fullgraph=True)
    for _ in range(6):
        want = X * (state.betas[0] * 0.9)
        torch.testing.assert_close(compiled(X), want)
    assert tenon.stats()["recompiles"] == 1


def test_a_function_bound_by_its_own_get():
    class Scale:
        by = 3

    def method(self, x):
        return x * self.by

    calls(lambda x: method.__get__(Scale(), Scale)(x), [(X,)], 1)


def test_a_float_made_of_a_size_is_exported():
    program = tenon.export(lambda x: x / (x.shape[0] / 3), (X,), dynamic_shapes={"x": {0: "n"}})
    for n in (2, 3, 4):
        torch.testing.assert_close(torch.as_tensor(program(X[:n])), X[:n] / (n / 3))


def test_importing_torchs_own_compiler_keeps_optimisers_in_the_graph():
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))  # from here on torch wraps Optimizer._init_group
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    for parameter in layer.parameters():
        parameter.grad = torch.ones_like(parameter)
    compiled = tenon.compile(lambda: optimizer.step(), fullgraph=True)
    compiled()
    assert tenon.stats()["graph_breaks"] == 0


def test_importing_torchs_own_compiler_keeps_modules_that_are_made_in_the_graph():
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))  # from here on torch wraps Module.__init__
    blocks = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(2))

    def chain(x):
        return torch.nn.Sequential(*blocks, torch.nn.ReLU())(x)

    x = torch.ones(3, 4)
    torch.testing.assert_close(tenon.compile(chain, fullgraph=True)(x), chain(x))
