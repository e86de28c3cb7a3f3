"""Training steps in compiled functions: gradients that are read, and what optimizers and schedulers write."""
import copy
import gc
import time

import pytest

import tenon

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("make", [
    lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
], ids=["SGD", "Adam", "AdamW"])
def test_a_training_step_writes_what_it_writes_in_eager(make):
    def trainer(net):
        optimizer = make(net.parameters())
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

        def step(x, y):
            loss = torch.nn.functional.mse_loss(net(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            return loss.detach(), scheduler.get_last_lr()

        return step

    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    twin = copy.deepcopy(net)
    eager, compiled = trainer(net), tenon.compile(trainer(twin))
    for _ in range(3):
        x, y = torch.randn(5, 4), torch.randn(5, 2)
        want, got = eager(x, y), compiled(x, y)
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(list(twin.parameters()), list(net.parameters()))


def test_a_gradient_is_read_and_written_at_every_call():
    weight = torch.nn.Parameter(torch.zeros(3))

    @tenon.compile
    def descend():
        with torch.no_grad():
            weight.add_(weight.grad, alpha=-1.0)
            weight.grad.zero_()

    for number in (1.0, 2.0):
        weight.grad = torch.full((3,), number)
        descend()
        assert weight.grad.tolist() == [0.0] * 3
    assert weight.tolist() == [-3.0] * 3
    weight.grad = None
    with pytest.raises(TypeError):
        descend()


def test_regions_that_are_named_for_profilers_end_no_graph():
    def named(x):
        with torch.autograd.profiler.record_function("doubling"):
            return x * 2

    report = tenon.explain(named)(torch.ones(3))
    assert (report.graph_count, report.graph_break_count) == (1, 0)
    torch.testing.assert_close(tenon.compile(named)(torch.ones(3)), torch.full((3,), 2.0))


def give_gradients(net, twin):
    """Gives the parameters of both the same random gradients."""
    for one, other in zip(twin.parameters(), net.parameters()):
        other.grad = torch.randn_like(other)
        one.grad = other.grad.clone()


SETTINGS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, "Adam": {"amsgrad": True}, "AdamW": {"weight_decay": 0.1},
    "NAdam": {"decoupled_weight_decay": True, "weight_decay": 0.1}, "Adamax": {"weight_decay": 0.1}, "Adadelta": {"maximize": True},
    "RMSprop": {"centered": True, "momentum": 0.9}, "Adagrad": {"lr_decay": 0.1}, "Rprop": {},
}


@pytest.mark.parametrize("foreach", [False, True], ids=["each", "foreach"])
@pytest.mark.parametrize("settings", ["plain", "rich", "tensor"])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_compiled_optimizer_steps_as_in_eager_without_a_break(name, settings, foreach):
    options = {"foreach": foreach, "lr": 0.01, **(SETTINGS[name] if settings == "rich" else {})}
    if settings == "tensor":
        options["lr"] = torch.tensor(0.01)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    twin = copy.deepcopy(net)
    try:
        mine, theirs = (getattr(torch.optim, name)(each.parameters(), **options) for each in (twin, net))
    except ValueError:
        pytest.skip("torch refuses these settings")
    step = tenon.compile(mine.step)
    graphs = []
    for _ in range(5):
        give_gradients(net, twin)
        step(), theirs.step()
        graphs.append(tenon.stats()["graphs"])
        torch.testing.assert_close(list(twin.parameters()), list(net.parameters()))
        torch.testing.assert_close(mine.state_dict()["state"], theirs.state_dict()["state"])
    assert tenon.stats()["graph_breaks"] == 0 and graphs[2:] == [graphs[2]] * 3, (tenon.stats(), graphs)


FUSED = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, "Adam": {"amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"maximize": True, "weight_decay": 0.1}, "Adagrad": {"lr_decay": 0.1, "weight_decay": 0.1, "maximize": True},
}


def versions(optimizer):
    """Of parameters, and of what is kept of them."""
    kept = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]
    return [tensor._version for tensor in [*optimizer.param_groups[0]["params"], *kept]]


@pytest.mark.parametrize("settings", ["plain", "rich", "tensor", "halves"])
@pytest.mark.parametrize("name", FUSED)
def test_a_fused_optimizer_is_followed(name, settings):
    options = {"fused": True, "lr": 0.01, **(FUSED[name] if settings in ("rich", "halves") else {})}
    if settings == "tensor":
        options["lr"] = torch.tensor(0.01)
    dtype = torch.bfloat16 if settings == "halves" else torch.float32
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2)).to(dtype)
    net, twin = copy.deepcopy(net), copy.deepcopy(net)  # both with versions of 0
    mine, theirs = (getattr(torch.optim, name)(each.parameters(), **options) for each in (twin, net))
    step = tenon.compile(mine.step)
    graphs = []
    for _ in range(5):
        give_gradients(net, twin)
        step(), theirs.step()
        graphs.append(tenon.stats()["graphs"])
        torch.testing.assert_close(list(twin.parameters()), list(net.parameters()))
        torch.testing.assert_close(mine.state_dict()["state"], theirs.state_dict()["state"])
        assert versions(mine) == versions(theirs)
    assert tenon.stats()["graph_breaks"] == 0 and graphs[2:] == [graphs[2]] * 3, (tenon.stats(), graphs)


def test_a_fused_step_with_a_loss_scale_is_torchs_own():
    def trainer(net):
        optimizer, scaler = torch.optim.AdamW(net.parameters(), lr=0.01, fused=True), torch.amp.GradScaler("cpu", init_scale=2.0**7)

        def step(x, worst):
            optimizer.zero_grad()
            scaler.scale(net(x).square().mean() * worst).backward()
            scaler.step(optimizer)
            scaler.update()
            return scaler.get_scale()

        return step

    net = torch.nn.Linear(4, 3)
    twin = copy.deepcopy(net)
    eager, compiled = trainer(net), tenon.compile(trainer(twin))
    for worst in (1.0, 2.0, float("inf"), 1.0):
        x = torch.randn(5, 4)
        assert compiled(x, worst) == eager(x, worst)
        torch.testing.assert_close(list(twin.parameters()), list(net.parameters()))


def test_clipping_and_a_step_are_one_graph():
    net = torch.nn.Linear(4, 3)
    twin = copy.deepcopy(net)

    def stepper(net):
        optimizer = torch.optim.Adam(net.parameters())

        def step(most):
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), most)
            torch.nn.utils.clip_grad_value_(net.parameters(), 0.3)
            optimizer.step()
            return norm

        return step

    eager, compiled = stepper(net), tenon.compile(stepper(twin))
    for most in (1.0, 0.5, 2.0):
        give_gradients(net, twin)
        torch.testing.assert_close(compiled(most), eager(most))
        torch.testing.assert_close(list(twin.parameters()), list(net.parameters()))
    assert tenon.stats()["graph_breaks"] == 0


def test_groups_of_tensors_of_several_dtypes_are_torchs_own():
    from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype as group

    tensors = [torch.ones(1), torch.ones(2, dtype=torch.float64), torch.ones(3)]
    assert [list(way([tensors], True)) for way in (group, tenon.compile(lambda *a: group(*a)))] == [list(group([tensors], True))] * 2
    got, want = tenon.compile(lambda x: group([[x * 2, x]], True))(torch.ones(2)), group([[torch.ones(2) * 2, torch.ones(2)]], True)
    assert list(got) == list(want)
    torch.testing.assert_close(list(got.values()), list(want.values()))


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_a_learning_rate_that_varies_is_compiled_once(name):
    net = torch.nn.Linear(3, 2)
    twin = copy.deepcopy(net)
    mine, theirs = (getattr(torch.optim, name)(each.parameters(), lr=0.1) for each in (twin, net))
    schedules = [torch.optim.lr_scheduler.ExponentialLR(each, 0.9) for each in (mine, theirs)]
    step = tenon.compile(mine.step)
    graphs = []
    for _ in range(6):
        give_gradients(net, twin)
        step(), theirs.step()
        for schedule in schedules:
            schedule.step()
        torch.testing.assert_close(list(twin.parameters()), list(net.parameters()))
        graphs.append(tenon.stats()["graphs"])
    assert graphs[2:] == [graphs[2]] * 4 and graphs[-1] <= 3, graphs


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "ASGD", "NAdam"])
def test_what_an_optimizer_refuses_is_refused(name):
    def step(weight):
        optimizer = getattr(torch.optim, name)([weight], capturable=True)  # which is for other devices
        weight.grad = torch.ones(3)
        optimizer.step()

    compiled = tenon.compile(step)
    for run in (step, compiled, compiled):
        with pytest.raises(AssertionError, match="capturable"):
            run(torch.nn.Parameter(torch.ones(3)))


def guards_of_a_step(parameters):
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    optimizer.step()
    return tenon.explain(torch.optim.SGD.step)(optimizer).guards


def test_guards_are_as_many_as_parameters_and_not_as_their_pairs():
    few, some, many = (len(guards_of_a_step([torch.nn.Parameter(torch.ones(2)) for _ in range(count)])) for count in (4, 8, 16))
    assert many - some == 2 * (some - few)


def capture_of_adam(count):
    """The nodes of a step over so many parameters, and the processor time of its first call: capture and guards, and no machine code."""
    parameters = [torch.nn.Parameter(torch.ones(3, 4)) for _ in range(count)]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.Adam(parameters, foreach=False)
    optimizer.step()
    tenon.reset()
    start = time.process_time()
    tenon.compile(optimizer.step, backend="reference")()
    seconds = time.process_time() - start
    assert tenon.stats()["graphs"] == 1
    return tenon.stats()["backends"]["reference"]["nodes"], seconds


def test_a_capture_of_a_step_is_linear_in_parameters():
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        capture_of_adam(10)
        hundred, three = (min(capture_of_adam(count) for _ in range(2)) for count in (100, 300))
    finally:
        gc.enable()
        gc.unfreeze()
    assert three[0] == 3 * hundred[0] > 1000
    assert three[1] < 7 * hundred[1]  # 9 if it were quadratic


def test_a_report_of_a_step_is_linear_in_parameters():
    """As text: each line says what it is about in a few words, however large the optimizer is."""
    few, some, many = (sum(map(len, guards_of_a_step([torch.nn.Parameter(torch.ones(2)) for _ in range(count)]))) for count in (20, 40, 60))
    assert abs((many - some) - (some - few)) < 0.05 * (some - few)


def test_guards_show_tensors_by_their_kind():
    guards = guards_of_a_step([torch.nn.Parameter(torch.ones(2, 3))])
    assert any("<Parameter of torch.float32[2, 3]>" in guard for guard in guards)
    assert not any("tensor(" in guard for guard in guards)


STEPS = {
    "SGD": dict(lr=0.1, momentum=0.9), "Adam": {}, "AdamW": {}, "NAdam": {}, "RAdam": {}, "RAdam, decoupled": dict(weight_decay=0.1, decoupled_weight_decay=True),
    "RAdam, decaying": dict(weight_decay=0.1, maximize=True), "ASGD": {}, "ASGD, averaging": dict(t0=3, weight_decay=0.1, lambd=0.1), "Rprop": {}, "RMSprop": dict(momentum=0.9, centered=True),
    "Adagrad": {}, "Adadelta": {}, "Adamax": {}, "Adafactor": {},
}


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("name", STEPS)
def test_many_steps_are_one_graph(name, foreach):
    """The first makes the optimizer's state; what depends on how many there were is computed in the graph."""
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 3, dtype=torch.float64), torch.nn.Tanh(), torch.nn.Linear(3, 2, dtype=torch.float64))
        optimizer = getattr(torch.optim, name.split(",")[0])(net.parameters(), foreach=foreach, **STEPS[name])

        def step(x, net=net, optimizer=optimizer):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()

        run = tenon.compile(step) if compiled else step
        for _ in range(10):
            run(torch.randn(5, 4, dtype=torch.float64))
        found.append([list(net.parameters()), [list(state.values()) for state in optimizer.state.values()], [p._version for p in net.parameters()]])
    torch.testing.assert_close(found[1], found[0])
    stats = tenon.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"]) == (2, 0, 0)


@pytest.mark.parametrize("settings", [
    {}, {"use_buffers": True}, {"multi_avg_fn": torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)}, {"avg_fn": torch.optim.swa_utils.get_ema_avg_fn(0.9)},
    {"multi_avg_fn": torch.optim.swa_utils.get_swa_multi_avg_fn()}, {"multi_avg_fn": torch.optim.swa_utils.get_ema_multi_avg_fn(0.9), "use_buffers": True},
], ids=["mean", "buffers", "lists", "each", "mean of lists", "lists and buffers"])
def test_an_average_of_the_parameters(settings):
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
        optimizer, average = torch.optim.SGD(net.parameters(), 0.1), torch.optim.swa_utils.AveragedModel(net, **settings)

        def step(x, net=net, optimizer=optimizer, average=average):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
            average.update_parameters(net)

        run = tenon.compile(step) if compiled else step
        for _ in range(5):
            run(torch.randn(5, 4))
        found.append([list(average.parameters()), list(average.buffers())])
    torch.testing.assert_close(found[1], found[0])
    stats = tenon.stats()
    assert (stats["graphs"], stats["graph_breaks"], stats["eager_fallbacks"]) == (2, 0, 1)  # the first call finds no gradients, and copies
