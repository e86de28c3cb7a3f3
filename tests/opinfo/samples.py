"""The samples of torch's operator database, and what became of one of them under tenon.compile."""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

import tenon
from tests.opinfo.judge import disagreement
from tests.walks.verdict import Verdict, how_it_ran

DEVICE = os.environ.get("TENON_TEST_DEVICE", "cpu")  # where samples are made
BACKEND = os.environ.get("TENON_TEST_BACKEND")
DTYPES = {"float32": torch.float32, "int64": torch.int64, "bool": torch.bool}
# Walked only where they are named.
OTHER_DTYPES = {name: getattr(torch, name) for name in ("float16", "bfloat16", "float64", "complex64", "uint8", "int8", "int16", "int32")}
WIDER = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64, torch.complex64: torch.complex128}
# Which of equal elements comes first is left open.
UNORDERED = {"sort", "argsort"}
# Likewise of which of equal elements an index tells, where a dimension is reduced: the place of `dim` among the arguments.
CHOSEN = {"kthvalue": 1, "mode": 0}
# Results that are not written without dropout, by position.
UNWRITTEN = {"torch.ops.aten._efficient_attention_forward": (2, 3), "torch.ops.aten._flash_attention_forward": (2, 3)}
# Their elements are whatever lay in memory.
UNDEFINED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_"}


def name_of(entry: Any) -> str:
    return entry.name + (f".{entry.variant_test_name}" if entry.variant_test_name else "")


def entries() -> dict[str, Any]:
    """All entries of the database by name."""
    return {name_of(entry): entry for entry in op_db}


def samples_of(entry: Any, dtype: str) -> Iterator[Any]:
    """The entry's samples in a dtype, with the seed that every run has; none where the entry lacks the dtype."""
    of_torch = (DTYPES | OTHER_DTYPES)[dtype]
    if of_torch not in entry.supported_dtypes(torch.device(DEVICE).type):
        return
    torch.manual_seed(0)
    yield from entry.sample_inputs(DEVICE, of_torch, requires_grad=False)


def judge(entry: Any, sample: Any) -> Verdict:
    """Runs one sample eagerly and compiled, twice, and compares."""
    with warnings.catch_warnings(), torch.no_grad(), own_seed():
        warnings.simplefilter("ignore")
        try:
            want = called(entry.op, sample)
            if DEVICE.startswith("cuda"):
                torch.cuda.synchronize()  # what eager does wrong there is told here
        except Exception as error:  # noqa: BLE001: whatever torch itself refuses is no sample
            return Verdict("skipped", f"eager: {type(error).__name__}: {error}")
        if DEVICE != "cpu" and _divides_by_zero(entry, sample):
            return Verdict("skipped", "torch leaves open what an integer divided by zero is on a device")
        return _compiled(entry, sample, want)


def _divides_by_zero(entry: Any, sample: Any) -> bool:
    """Whether the host's torch refuses the sample for a divisor; asked where there are integers alone."""
    def tensors(x: Any) -> list:
        return [t for t in tree_leaves(x) if isinstance(t, torch.Tensor)]

    given = (sample.input, sample.args, sample.kwargs)
    if not tensors(given) or any(t.is_floating_point() or t.is_complex() for t in tensors(given)):
        return False
    try:
        torch.manual_seed(1234)
        x, args, kwargs = tree_map(lambda t: t.cpu() if isinstance(t, torch.Tensor) else "cpu" if isinstance(t, torch.device) else t, given)
        entry.op(x, *args, **kwargs)
    except Exception as error:  # noqa: BLE001: other words say nothing
        return "ZeroDivisionError" in str(error)
    return False


def own_seed() -> contextlib.AbstractContextManager:
    """Random entries are called as they are: `called` sets the seed, and the database's own wrapper would be what is compiled."""
    return mock.patch.object(common_methods_invocations, "wrapper_set_seed", lambda op, *args, **kwargs: op(*args, **kwargs))


def _compiled(entry: Any, sample: Any, want: Any) -> Verdict:
    tenon.reset()
    program = _program(entry.op)
    compiled = tenon.compile(program, backend=BACKEND)
    try:
        results = [called(compiled, sample) for _ in range(2)]
    except Exception as error:  # noqa: BLE001: an exception where eager has none is a wrong result
        return Verdict("wrong", f"{type(error).__name__}: {error}")
    exact = None if _same_bits(results, want) else exact_result(entry, sample)
    for result in results:
        if what := difference(entry, sample, result, want, exact):
            return Verdict("wrong", what)
    return how_it_ran(lambda: _explained(program, sample))


def difference(entry: Any, sample: Any, result: Any, want: Any, exact: Any) -> str | None:
    """Says where a result differs from eager's in what the entry promises; nothing where it agrees."""
    result, wanted = (_written(entry, sample, r) for r in (result, want))
    what = disagreement(_shapes(result), _shapes(wanted), None) if entry.name in UNDEFINED else disagreement(result, wanted, exact)
    chosen = what and (entry.name in UNORDERED and _same_order(sample, result, wanted) or entry.name in CHOSEN and _same_choice(entry, sample, result, wanted))
    return None if chosen else what


def _same_order(sample: Any, result: Any, want: Any) -> bool:
    """True where both results put equal elements at every place, whichever of them they chose."""
    if sample.kwargs.get("stable"):
        return False
    dim = sample.kwargs.get("dim", next((a for a in sample.args if type(a) is int), -1))
    ours, theirs = (torch.gather(sample.input, dim, r if isinstance(r, torch.Tensor) else r.indices) for r in (result, want))
    return torch.equal(ours, theirs) and (isinstance(result, torch.Tensor) or torch.equal(result.values, want.values))


def _same_choice(entry: Any, sample: Any, result: Any, want: Any) -> bool:
    """True where both results have the same elements, and each index is of such an element."""
    dims = sample.args[CHOSEN[entry.name]:][:1]
    dim = sample.kwargs.get("dim", dims[0] if dims else -1)
    if not torch.equal(result.values, want.values) or sample.input.dim() == 0:
        return torch.equal(result.values, want.values)
    kept = result.indices.dim() == sample.input.dim()
    places = result.indices if kept else result.indices.unsqueeze(dim)
    chosen = torch.gather(sample.input, dim, places)
    return torch.equal(chosen if kept else chosen.squeeze(dim), want.values)


def _written(entry: Any, sample: Any, result: Any) -> Any:
    """The result without what the function leaves as it lay in memory."""
    if entry.name not in UNWRITTEN or sample.kwargs.get("dropout_p"):
        return result
    return type(result)(r for i, r in enumerate(result) if i not in UNWRITTEN[entry.name]) if type(result) in (list, tuple) else result


def _program(op: Any) -> Any:
    def program(x, *args, **kwargs):
        return op(x, *args, **kwargs)

    return program


def _explained(program: Any, sample: Any) -> Any:
    return tenon.explain(program)(*copy.deepcopy((sample.input, *sample.args)), **copy.deepcopy(sample.kwargs))


def called(function: Any, sample: Any) -> Any:
    """The result of a call with copies of the sample's operands, and the seed that every call has."""
    torch.manual_seed(1234)
    args = copy.deepcopy((sample.input, *sample.args))
    return function(*args, **copy.deepcopy(sample.kwargs))


def exact_result(entry: Any, sample: Any) -> Any:
    """What torch computes of the sample in float64; nothing where it does not."""
    def widened(x):
        if isinstance(x, torch.Tensor):
            return x.detach().to(WIDER[x.dtype]) if x.dtype in WIDER else x
        return WIDER.get(x, x) if isinstance(x, torch.dtype) else x

    try:
        wide = dataclasses.replace(sample) if dataclasses.is_dataclass(sample) else copy.copy(sample)
        wide.input, wide.args, wide.kwargs = tree_map(widened, (sample.input, sample.args, sample.kwargs))
        with _floats_of_integers_in_double():
            return called(entry.op, wide)
    except Exception:  # noqa: BLE001: without a float64 result eager's own is the reference
        return None


@contextlib.contextmanager
def _floats_of_integers_in_double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def _same_bits(results: list, want: Any) -> bool:
    return all(disagreement(result, want, None) is None for result in results)


def _shapes(result: Any) -> Any:
    return tree_map(lambda x: (x.dtype, tuple(x.shape), x.stride()) if isinstance(x, torch.Tensor) else x, result)
