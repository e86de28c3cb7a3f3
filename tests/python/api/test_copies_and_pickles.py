"""Compiled functions and modules are copied and pickled as what they wrap."""
import copy
import dataclasses
import functools
import multiprocessing
import pickle
import sys

import numpy as np
import pytest
import tenon


def plain(x):
    return x * 2 + 1


@tenon.compile
def decorated(x):
    return x * 3


@tenon.compile(fullgraph=True)
def whole(x):
    return x + 4


class Scaled:
    def __init__(self, factor):
        self.factor = factor
        self.step = tenon.compile(self.scale)

    def scale(self, x):
        return x * self.factor

    @tenon.compile
    def method(self, x):
        return x + self.factor


class CallableObject:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def __setstate__(self, state):
        self.__dict__.update(state, restored=True)


@dataclasses.dataclass
class Settings:
    activation: object = decorated
    factor: float = 2.0


X = np.arange(4.0)


def again(thing, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(thing, protocol))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_decorated_function_pickles_by_its_name(protocol):
    assert again(decorated, protocol) is decorated
    assert again([whole, Settings()], protocol) == [whole, Settings()]


def test_a_copy_compiles_for_itself():
    decorated(X)
    for copied in (copy.copy(decorated), copy.deepcopy(decorated)):
        assert type(copied) is type(decorated) and copied is not decorated
        before = tenon.stats()["graphs"]
        assert np.array_equal(copied(X), X * 3) and tenon.stats()["graphs"] == before + 1
        assert copied.__wrapped__ is decorated.__wrapped__ and copied.__name__ == "decorated"


def test_a_copy_of_a_decorated_function_pickles_although_its_name_leads_elsewhere():
    copied = again(copy.copy(whole))
    assert copied is not whole and copied.__wrapped__ is whole.__wrapped__ and np.array_equal(copied(X), X + 4)
    assert copied._tenon_settings["fullgraph"] is True


def test_a_compiled_function_pickles_as_its_function_and_settings():
    compiled = again(tenon.compile(plain, dynamic=True, options={"recompile_limit": 3}))
    assert compiled.__wrapped__ is plain and np.array_equal(compiled(X), plain(X))
    assert compiled._tenon_settings["dynamic"] is True and compiled._tenon_settings["recompile_limit"] == 3


def test_bound_methods_and_objects_go_by_value():
    for scaled in (again(Scaled(5.0)), copy.deepcopy(Scaled(5.0))):
        scaled.factor = 7.0
        assert np.array_equal(scaled.step(X), X * 7) and np.array_equal(scaled.method(X), X + 7)
        assert scaled.step.__self__ is scaled
    compiled = again(tenon.compile(CallableObject(2.0)))
    assert np.array_equal(compiled(X), X * 2) and compiled.__wrapped__.restored
    assert again(Scaled.method) is Scaled.method


def test_partials_and_own_attributes_stay():
    compiled = tenon.compile(functools.partial(np.multiply, 3.0))
    compiled.note = [1]
    for copied in (again(compiled), copy.deepcopy(compiled)):
        assert np.array_equal(copied(X), X * 3) and copied.note == [1] and copied.note is not compiled.note
    assert copy.copy(compiled).note is compiled.note


def test_an_object_that_holds_what_was_compiled_of_it():
    held = CallableObject(2.0)
    held.compiled = tenon.compile(held)
    copied = copy.deepcopy(held.compiled)
    assert copied.__wrapped__ is not held and copied.__wrapped__.compiled is copied


@pytest.mark.parametrize("fn", [lambda x: x, functools.partial(lambda x: x)])
def test_what_does_not_pickle_plainly_raises_the_same_error(fn):
    with pytest.raises(Exception) as want:
        pickle.dumps(fn)
    with pytest.raises(type(want.value)) as got:
        pickle.dumps(tenon.compile(fn))
    assert str(got.value) == str(want.value)


def test_a_pickle_holds_no_machine_code():
    compiled = tenon.compile(plain)
    compiled(X)
    assert len(pickle.dumps(compiled)) < 600


def run_in_worker(compiled, x):
    return compiled(x), "tenon" in sys.modules


def test_spawned_workers_get_compiled_functions():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        result, _ = pool.apply(run_in_worker, (tenon.compile(plain), X))
    assert np.array_equal(result, plain(X))


class TestModules:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = TestModules.torch.nn.Linear(3, 2)
            self.activation = tenon.compile(TestModules.torch.relu)

        def forward(self, x):
            return self.activation(self.linear(x))

    def test_modules_that_hold_one(self):
        torch = self.torch
        net, x = self.Net(), torch.ones(1, 3)
        with torch.no_grad():
            for copied in (copy.deepcopy(net), torch.optim.swa_utils.AveragedModel(net), copy.copy(net)):
                assert torch.equal(copied(x), net(x))

    def test_compiled_modules_stay_compiled(self):
        torch = self.torch
        compiled, x = tenon.compile(torch.nn.Linear(3, 2), fullgraph=True), torch.ones(1, 3)
        for copied in (again(compiled), copy.deepcopy(compiled), again(torch.nn.Sequential(compiled))[0]):
            assert type(copied) is type(compiled) and copied._tenon_settings["fullgraph"] and copied._tenon_module is not compiled._tenon_module
            with torch.no_grad():
                assert torch.equal(copied(x), compiled(x))

    def test_datasets_of_spawned_workers(self):
        torch = self.torch
        loader = torch.utils.data.DataLoader(Squares(), batch_size=2, num_workers=1, multiprocessing_context="spawn")
        assert [batch.tolist() for batch in loader] == [[0, 1], [4, 9]]


class Squares:
    def __init__(self):
        self.square = tenon.compile(np.square)

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return self.square(np.array([i]))[0]
