"""Exceptions that the instruction at a break raises: their words and tracebacks are those of plain execution."""
import traceback

import pytest

import tenon


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error), [entry.name for entry in traceback.extract_tb(error.__traceback__)][1:]


def takes_names(a, **named):
    return a, named


@pytest.mark.parametrize("call", (lambda: takes_names(*5), lambda: takes_names(**5), lambda: print(*5), lambda: [].append(*5)))
def test_arguments_that_cannot_be_taken_apart(call):
    compiled = tenon.compile(call)
    for _ in range(2):
        assert outcome(compiled)[:2] == outcome(call)[:2]


def test_an_exception_that_c_code_leaves_to_be_made():
    capi = pytest.importorskip("_testcapi")

    class Unmade(Exception):
        def __init__(self):
            raise RuntimeError("is not made")

    def run():
        try:
            capi.raise_exception(Unmade, 0)
        except RuntimeError as error:
            return [entry.name for entry in traceback.extract_tb(error.__traceback__)]

    compiled = tenon.compile(run)
    assert compiled() == run() == compiled()


def test_a_traceback_that_an_exception_was_given():
    def run():
        try:
            1 / 0
        except ZeroDivisionError as error:
            given = error.__traceback__
        made = IndexError().with_traceback(given)
        tenon.graph_break()
        try:
            raise made
        except IndexError as error:
            return error.__traceback__.tb_next is given

    compiled = tenon.compile(run)
    assert compiled() and compiled()


@pytest.mark.parametrize("broken", (False, True))
def test_lists_that_hold_themselves(broken):
    torch = pytest.importorskip("torch")

    def run():
        held = [0]
        held += [held]
        if broken:
            tenon.graph_break()
        errors = []
        for make in (torch.tensor, torch.as_tensor):
            for data in (held, [[1, 2], held], {"data": held}):
                try:
                    make(data)
                except (TypeError, RuntimeError) as error:
                    errors.append(str(error))
        return errors

    compiled = tenon.compile(run)
    assert compiled() == run() == compiled()


def test_indices_into_tensors_without_elements():
    torch = pytest.importorskip("torch")
    for read in (lambda x, i: torch.index_select(x, 0, i), lambda x, i: torch.nn.functional.embedding(i, x), lambda x, i: x[i]):
        for at in (2, 7):
            given = torch.zeros(4, 0), torch.tensor([1, at])
            assert outcome(lambda: tenon.compile(read)(*given).shape)[:2] == outcome(lambda: read(*given).shape)[:2]
