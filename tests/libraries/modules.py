"""Every module of torch.testing's module_db, with each of its samples, evaluating and training: python -m tests.libraries.modules [NAME...].

A sample is compiled and called twice under `torch.no_grad()`. Results, buffers, their versions and the arguments must be eager's; an exception must
be of eager's type. Each module runs in a process of its own, so that a crash is a line of the report.
"""
from __future__ import annotations

import argparse
import collections
import copy
import warnings

import torch
from torch.testing._internal.common_modules import module_db

import tenon
from tests.libraries.processes import in_a_process

leaves = torch.utils._pytree.tree_leaves


def difference(got, want) -> str | None:
    """What tells two results apart, or None."""
    ours, theirs = leaves(got), leaves(want)
    if len(ours) != len(theirs):
        return f"{len(ours)} leaves, not {len(theirs)}"
    for one, other in zip(ours, theirs):
        if not isinstance(other, torch.Tensor):
            if type(one) is not type(other):
                return f"{one!r}, not {other!r}"
            continue
        described = [(t.dtype, tuple(t.shape), t.stride() if t.numel() > 1 else ()) for t in (one, other)]
        if described[0] != described[1]:
            return f"{described[0]}, not {described[1]}"
        if not torch.allclose(one, other, rtol=2e-4, atol=2e-5, equal_nan=True):
            return "other values"
    return None


def called(module, arguments):
    """The result and the exception of a call with the same random numbers each time."""
    torch.manual_seed(5)
    try:
        return module(*arguments[0], **arguments[1]), None
    except Exception as error:  # noqa: BLE001: it is compared
        return None, error


def compare(module, twin, compiled, given) -> str | None:
    """One call of each: what differs, or None."""
    theirs, ours = copy.deepcopy(given), copy.deepcopy(given)
    (want, raised), (got, raised_too) = called(module, theirs), called(compiled, ours)
    if type(raised) is not type(raised_too):
        return f"raises {raised_too!r}, not {raised!r}"[:200]
    versions = [[b._version for b in m.buffers()] for m in (twin, module)]
    return (difference(got, want) or difference(list(twin.buffers()), list(module.buffers())) or difference(ours, theirs)
            or (None if versions[0] == versions[1] else f"versions {versions[0]}, not {versions[1]}"))


def why_broken(module, given) -> str:
    arguments = copy.deepcopy(given)
    try:
        return "; ".join(b.reason for b in tenon.explain(module)(*arguments[0], **arguments[1]).break_reasons)
    except Exception as error:  # noqa: BLE001: the sample is one that raises
        return f"raises {type(error).__name__}"


def judge(module, given) -> tuple[str, str]:
    """What became of a sample, and why."""
    module = copy.deepcopy(module)  # twins in all: a copy's versions begin anew
    twin = copy.deepcopy(module)
    tenon.reset()
    compiled = tenon.compile(twin)
    with torch.no_grad():
        for _ in range(2):
            if found := compare(module, twin, compiled, given):
                return "wrong", found
        stats = tenon.stats()
        if stats["graph_breaks"]:
            return "break", why_broken(twin, given)
    if stats["eager_fallbacks"]:
        return "eager", "the graph could not run"
    return ("opaque" if stats["opaque_nodes"] else "whole"), ""


def samples(info, training: bool):
    """The modules and arguments of an entry."""
    for sample in info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=training):
        if sample.forward_input is not None:
            module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs).train(training)
            yield module, (sample.forward_input.args, sample.forward_input.kwargs)


def judgements(info, training: bool):
    """What became of each sample of an entry."""
    for module, given in samples(info, training):
        yield judge(module, given)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.libraries.modules", description=__doc__)
    parser.add_argument("names", nargs="*", help="entries, as nn.GRU; all unless some are named")
    wanted = parser.parse_args().names
    warnings.simplefilter("ignore")
    total: collections.Counter = collections.Counter()
    for info in module_db:
        if wanted and info.name not in wanted:
            continue
        for training in (False, True):
            rows, status = in_a_process(lambda: judgements(info, training))
            counts = collections.Counter(kind for kind, _ in rows)
            if status:
                counts["crash"] += 1
            total.update(counts)
            odd = sorted({why for kind, why in rows if kind in ("wrong", "break", "eager")})
            if odd or status:
                print(f"| {info.name} | {'train' if training else 'eval'} | {dict(counts)} | {'; '.join(odd)} |", flush=True)
    print(dict(total))
    return 1 if total["wrong"] or total["crash"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
