"""Runs models in several modes, each model in a process of its own: python -m tests.libraries.sweep [--modes plain,freeze,train] LIBRARY [NAME...]."""
from __future__ import annotations

import argparse
import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import tenon
from tests.libraries.__main__ import error_of, tensors_of
from tests.libraries.models import FAMILIES, torchvision_operators
from tests.libraries.processes import in_a_process

Case = tuple[torch.nn.Module, tuple, dict]
MODES = ("plain", "freeze", "train")
ODD = (2, 3, 97, 129)  # no size of which a tile is a divisor


def images(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def torchvision_case(name: str) -> Case:
    torchvision_operators()
    from torchvision import models

    extra = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if models.get_model_builder(name).__module__.startswith("torchvision.models.segmentation"):
        extra = {"weights_backbone": None}
    square = name.startswith(("vit", "maxvit"))
    return models.get_model(name, weights=None, **extra), (images(1, 3, 224, 224) if square else images(*ODD),), {}


def timm_case(name: str) -> Case:
    torchvision_operators()
    import timm

    model = timm.create_model(name, pretrained=False)
    size = model.default_cfg["input_size"]
    fixed = model.default_cfg.get("fixed_input_size") or hasattr(model, "pos_embed") or hasattr(model, "patch_embed")
    return model, (images(1, *size) if fixed else images(*ODD),), {}


def known_case(library: str) -> Callable[[str], Case]:
    def case(name: str) -> Case:
        for known, model, args, kwargs in FAMILIES[library]():
            if known == name:
                return model, args, kwargs
        raise ValueError(f"{library} has no {name} here")

    return case


CASES = {"torchvision": torchvision_case, "timm": timm_case}


def prepared(model: torch.nn.Module) -> torch.nn.Module:
    """Gives batch norms statistics that are not those of nothing: values neither vanish nor explode with depth."""
    generator = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
            module.running_mean.normal_(0, 0.1, generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
    return model


def judge(case: Case, mode: str) -> dict[str, Any]:
    """Two calls in one mode, beside eager's on a twin; then what ran where, and the error."""
    model, args, kwargs = case
    model = prepared(copy.deepcopy(model)).train(mode == "train")
    twin = copy.deepcopy(model)
    tenon.reset()
    compiled = tenon.compile(model, options={"freeze": True} if mode == "freeze" else None)
    worst = 0.0
    with torch.no_grad():
        for call in range(2):
            before = copy.deepcopy(twin)
            runs = []
            for callee in (twin, compiled):
                torch.manual_seed(call)
                runs.append(tensors_of(callee(*copy.deepcopy(args), **copy.deepcopy(kwargs))))
            want, got = runs
            if [(t.shape, t.dtype, t.stride()) for t in got] != [(t.shape, t.dtype, t.stride()) for t in want]:
                raise AssertionError("the results have other shapes, dtypes or strides than eager's")
            torch.manual_seed(call)
            worst = max(worst, error_of(got, before, copy.deepcopy(args), copy.deepcopy(kwargs), want))
    for (name, ours), theirs in zip(model.named_buffers(), twin.buffers()):
        if not torch.allclose(ours.double(), theirs.double(), rtol=1e-3, atol=1e-5):
            raise AssertionError(f"the buffer {name} has other values than eager's")
    stats = tenon.stats()
    nodes = {name: backend["nodes"] for name, backend in stats["backends"].items() if backend["nodes"]}
    others = {name: count for name, count in nodes.items() if name != "llvm"}
    memory = stats["host"]["memory"]
    return {"breaks": stats["graph_breaks"], "fallbacks": stats["eager_fallbacks"], "recompiles": stats["recompiles"], "nodes": sum(nodes.values()), "elsewhere": others,
            "events": {kind: count for kind, count in stats["host"]["events"].items() if kind.startswith(("compile_", "execute_failed", "fallback"))},
            "error": worst, "peak": memory["peak_bytes"] / max(1, memory["unfused_peak_bytes"])}


def why_failed(error: Exception) -> dict[str, str]:
    return {"failed": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}


def rows_of(library: str, name: str, modes: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each mode gave."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    case = CASES.get(library, known_case(library))(name)
    for mode in modes:
        try:
            yield mode, judge(case, mode)
        except Exception as error:  # noqa: BLE001: the table goes on
            yield mode, why_failed(error)


def is_fine(row: dict[str, Any]) -> bool:
    return "failed" not in row and not row["breaks"] and not row["fallbacks"] and "reference" not in row["elsewhere"] and not row["events"] and row["error"] < 4


def line(library: str, name: str, mode: str, row: dict[str, Any]) -> str:
    mark = "" if is_fine(row) else " !"
    if "failed" in row:
        return f"| {library} | {name} | {mode} | {row['failed']}{mark} |"
    others = ", ".join(f"{count} {backend}" for backend, count in row["elsewhere"].items())
    events = "".join(f"; {kind} {count}" for kind, count in row["events"].items())
    return (f"| {library} | {name} | {mode} | {row['breaks']} | {row['fallbacks']} | {row['recompiles']} | {row['nodes']} | {others}{events} | {row['error']:.1f} "
            f"| {row['peak']:.2f}{mark} |")


HEADER = ("| library | model | mode | breaks | eager calls | recompiles | nodes | of them elsewhere | error / eager's | peak / node by node |\n"
          "|---|---|---|---|---|---|---|---|---|---|")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.libraries.sweep", description=__doc__)
    parser.add_argument("--modes", default=",".join(MODES), help="some of plain, freeze and train (all under no_grad)")
    parser.add_argument("library", choices=list(FAMILIES))
    parser.add_argument("names", nargs="*", help="any model that the library can make by name; the known ones unless some are named")
    options = parser.parse_args()
    names = options.names or [name for name, *_ in FAMILIES[options.library]()]
    bad = 0
    print(HEADER)
    for name in names:
        rows, status = in_a_process(lambda name=name: rows_of(options.library, name, options.modes.split(",")))
        if status:
            rows.append(("", {"failed": f"the process ended with the status {status}"}))
        for mode, row in rows:
            bad += not is_fine(row)
            print(line(options.library, name, mode, row), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
