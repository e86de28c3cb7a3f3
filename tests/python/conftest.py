"""What all tests of the package share: a fresh state, and comparison of compiled with plain execution."""
from __future__ import annotations

import atexit
import copy
import dataclasses
import os
import random
import shutil
import sys
import tempfile

import numpy as np
import pytest

if "TENON_CACHE_DIR" not in os.environ:  # neither what the user has nor what another build left is found
    os.environ["TENON_CACHE_DIR"] = tempfile.mkdtemp(prefix="tenon-tests-")
    atexit.register(shutil.rmtree, os.environ["TENON_CACHE_DIR"], ignore_errors=True)

import tenon  # noqa: E402

SEED = int(os.environ.get("TENON_TEST_SEED", "0"))
DEVICE = os.environ.get("TENON_TEST_DEVICE")  # where `check` puts tensors: devices/README.md
if DEVICE:
    sys.path.insert(0, os.path.dirname(__file__))
    import on_device  # noqa: E402

    if DEVICE.startswith("mock"):
        on_device.open_mock()


def fresh_copy(args):
    """A deep copy of arguments, on the device under test where there is one."""
    args = copy.deepcopy(args)
    return on_device.placed(args, DEVICE) if DEVICE else args


def of_many_kernels(rounds, serial):
    """A function of two kernels a round, small to run, that has none in common with one of another serial number or process."""
    names = {"np": np}
    steps = "".join(f"  b = np.exp(-np.sin(a) * {i}.25) + {serial}.5{os.getpid()}\n  c = np.mean(np.tanh(b) * b)\n  a = np.cos(a * 0.5 + c / 8)\n" for i in range(rounds))
    exec(f"def fn(a):\n{steps}  return a", names)
    return names["fn"]


def same(got, want):
    """Checks that two results agree in type, dtype, shape, strides and values."""
    assert type(got) is type(want), (type(got), type(want))
    torch = sys.modules.get("torch")
    if torch and isinstance(want, torch.Tensor):
        assert (got.dtype, got.shape, got.device, got.requires_grad) == (want.dtype, want.shape, want.device, want.requires_grad)
        assert want.numel() == 0 or _strides_agree(got.shape, got.stride(), want.stride()), (got.stride(), want.stride())
        torch.testing.assert_close(got, want, equal_nan=True)
    elif isinstance(want, np.ndarray):
        assert (got.dtype, got.shape, got.flags.writeable) == (want.dtype, want.shape, want.flags.writeable)
        assert want.size == 0 or _strides_agree(got.shape, got.strides, want.strides), (got.strides, want.strides)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    elif isinstance(want, np.generic):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            same(got[key], want[key])
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for one, other in zip(got, want):
            same(one, other)
    elif dataclasses.is_dataclass(want):
        same(dataclasses.asdict(got), dataclasses.asdict(want))
    else:
        assert got == want


def _strides_agree(shape, got, want):
    return all(n == 1 or p == q for n, p, q in zip(shape, got, want))


class Graphs:
    """A backend that keeps the graphs that it gets, and runs them unoptimised."""

    __name__ = "graphs"

    def __init__(self):
        self.seen = []

    def __call__(self, graph, example_inputs):
        self.seen.append(graph.tenon_graph)
        return graph.forward


def seed_draws():
    """What tests draw is the same in any order and selection of them."""
    random.seed(SEED)
    np.random.seed(SEED)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(SEED)


def pytest_collectstart(collector):
    if isinstance(collector, pytest.Module):
        seed_draws()


@pytest.fixture(autouse=True)
def fresh():
    """Each test starts without compiled code, counters or logs, and with the same seeds."""
    tenon.reset()
    seed_draws()
    yield
    tenon.set_logs()


@pytest.fixture
def check():
    """Runs a function compiled by the default backend and by a recording one, twice a set of arguments, and compares with plain execution."""

    def run(fn, *calls, fallbacks=0, **options):
        recorder = Graphs()
        ways = [tenon.compile(fn, backend=recorder, **options), tenon.compile(fn, **options)]
        for args in calls:
            try:
                want = fn(*fresh_copy(args))
            except Exception as raised:
                if not DEVICE:
                    raise
                pytest.skip(f"not on this device: {raised}")  # a tensor of the host's beside it
            for way in ways * 2:
                same(way(*fresh_copy(args)), want)
        if fallbacks is not None and not DEVICE:
            assert tenon.stats()["eager_fallbacks"] == fallbacks, tenon.stats()
        return recorder.seen

    run.same = same
    return run


@pytest.fixture
def counts():
    """Compares calls of a function on arrays with plain ones, twice, and gives the number of breaks."""

    def run(fn, *calls):
        compiled = tenon.compile(fn)
        for args in (*calls, *calls):
            np.testing.assert_equal(compiled(*args), fn(*args))
        return tenon.stats()["graph_breaks"]

    return run


@pytest.fixture
def graphs():
    """A recording backend."""
    return Graphs()


@pytest.fixture
def as_plain():
    """Runs a scenario, which gets what compiles its functions, compiled and plain, and compares the lists of what it has seen."""

    def run(scenario):
        want, got = scenario(lambda fn: fn), scenario(tenon.compile)
        same(got, want)

    return run
