"""Gradients of the samples of torch's operator database: of the graph as captured, by the reference, against torch.autograd in float64."""
from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

import tenon
from tests.opinfo import reference
from tests.opinfo.samples import own_seed, entries, name_of
from tests.walks.verdict import Verdict

__all__ = ["DTYPES", "entries", "judge", "samples_of"]

SAMPLES, FILLED = 8, 4  # of an entry
FEW = {"grid_sampler_3d": 1}  # whose gradients of gradients take minutes, and much memory
# Which of equal elements comes first is left open.
UNORDERED = {"sort", "msort"}
DTYPES = {"first order": 1, "second order": 2}
# What the float operands of a sample are filled with, besides their own values: places where functions have kinks, ties, and ends of ranges.
FILLS = {
    "kinks": [0.0, 1.0, -1.0, 3.0, -3.0, 0.5, -0.5, 6.0, 2.0, -2.0, -0.0, 20.0],
    "zeros": [0.0],
    "ones": [1.0],
    "pairs": [2.0, 1.0, 1.0, 2.0],
    "extremes": [1e-30, 88.0, -88.0, 104.0, -104.0, -1e-30, 0.0, 1e4, -1e4],
    "endless": [1.0, math.inf, 2.0, -math.inf, 0.5, math.nan],
}



@dataclasses.dataclass(frozen=True)
class LeftOpen:
    """What torch itself leaves open, or is known to differ: no case."""

    entries: str  # with spaces between them
    fill: str
    reason: str
    orders: tuple[int, ...] = (1, 2)
    values: str = ""  # only elements with these values, which the operands then do not get


LEFT_OPEN = [
    # Where torch's answers differ between its own loops: an element of a vector and one of the rest behind the last vector.
    LeftOpen("nn.functional.elu nn.functional.celu nn.functional.selu nn.functional.hardtanh nn.functional.relu6 nn.functional.hardswish "
             "nn.functional.softshrink nn.functional.hardshrink", "endless", "what is no number has another gradient in vectors than behind the last one", values="nan"),
    LeftOpen("logit", "kinks", "the gradient at -0 is -inf in vectors, inf behind the last one", values="-0.0"),
    LeftOpen("logit", "endless", "with eps, what is no number has the gradient 0 in vectors, none behind the last one", values="nan"),
    # Where torch's second derivative is not that of its first.
    LeftOpen("nn.functional.prelu", "kinks zeros extremes", "at 0 the first derivative takes the weight, the second takes 1", (2,)),
    LeftOpen("logit", "kinks zeros ones pairs", "beyond eps, and at both ends, the second derivative is 0 times infinity", (2,)),
    LeftOpen("lgamma", "ones", "torch's trigamma is right to 1e-9", (2,)),
    LeftOpen("linalg.vander linalg.vector_norm masked.cumprod nn.functional.cosine_similarity", "extremes",
             "what cancellation leaves of numbers beyond 1e16 times as large", (2,)),
    # Infinities in the middle of sums, where torch's algorithm decides what is no number.
    LeftOpen("grid_sampler_2d grid_sampler_3d nn.functional.grid_sample", "endless", "torch reads beside its memory where a place is no number, and dies"),
    LeftOpen("masked.cumprod cumprod", "endless", "torch divides the product by the element, infinity by infinity", (1,)),
    LeftOpen("nn.functional.scaled_dot_product_attention", "endless", "blocks of keys with infinite scores", (1,)),
    LeftOpen("nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d", "endless", "zeros between elements meet infinite weights", (2,)),
]


def _left_open(name: str, fill: str | None, order: int) -> list[LeftOpen]:
    return [o for o in LEFT_OPEN if name in o.entries.split() and fill in o.fill.split() and order in o.orders]


@dataclasses.dataclass(frozen=True)
class Case:
    """A sample, how its operands are filled, and how often it is differentiated."""

    sample: Any
    fill: str | None
    order: int
    without: str = ""  # values that the operands do not get
    nudged: bool = False  # each element by a rounding

    def filled(self) -> tuple:
        """The arguments of the call, each float64 tensor with the case's elements in memory of its own."""
        made: dict[int, torch.Tensor] = {}

        def one(x: Any) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            if id(x) not in made:
                made[id(x)] = self._elements(x.detach().clone(), len(made))
            return made[id(x)]

        return tree_map(one, ((self.sample.input, *self.sample.args), self.sample.kwargs))

    def _elements(self, x: torch.Tensor, number: int) -> torch.Tensor:
        if self.fill is None or x.dtype != torch.float64:
            return x
        values = [v for v in FILLS[self.fill] if str(v) not in self.without.split()]
        shift = 0 if self.fill == "pairs" else 5 * number
        cycle = [values[(i + shift) % len(values)] for i in range(x.numel())]
        filled = torch.tensor(cycle, dtype=x.dtype).reshape(x.shape)
        return filled * (1 + 2**-52 * torch.arange(-1, x.numel() - 1).remainder(3).sub(1).reshape(x.shape)) if self.nudged else filled


def samples_of(entry: Any, order: str) -> Iterator[Case]:
    """The first samples of the entry, as they are, and some of them filled in every way."""
    if torch.float64 not in entry.supported_dtypes("cpu"):
        return
    torch.manual_seed(0)
    samples = entry.sample_inputs("cpu", torch.float64, requires_grad=True)
    for number, sample in enumerate(itertools.islice(samples, FEW.get(entry.name, SAMPLES))):
        for fill in (None, *FILLS) if number < FILLED and entry.name not in UNORDERED else (None,):
            yield Case(sample, fill, DTYPES[order], " ".join(o.values for o in _left_open(name_of(entry), fill, DTYPES[order])))


def judge(entry: Any, case: Case) -> Verdict:
    """Differentiates one case by torch's engine and in the graph, and compares."""
    for left_open in _left_open(name_of(entry), case.fill, case.order):
        if not left_open.values:
            return Verdict("skipped", left_open.reason)
    with warnings.catch_warnings(), own_seed():
        warnings.simplefilter("ignore")
        try:
            want, program = _eager(entry.op, case)
        except Exception as error:  # noqa: BLE001: what torch itself refuses to differentiate is no case
            return Verdict("skipped", f"eager: {type(error).__name__}: {error}")
        if want is None:
            return Verdict("skipped", "nothing to differentiate")
        verdict = _compared(entry.op, program, case, want)
        return dataclasses.replace(verdict, why=f"{case.fill or 'as given'}: {verdict.why}") if verdict.why else verdict


@dataclasses.dataclass
class Program:
    """The call and a loss of its differentiable results, each weighed by a tensor of random numbers."""

    op: Callable
    counted: list[bool]  # which of the results that are tensors
    weights: list[torch.Tensor]

    def __call__(self, args: tuple, kwargs: dict, weights: list[torch.Tensor]) -> torch.Tensor:
        return _loss(tree_flatten(self.op(*args, **kwargs))[0], self.counted, weights)


def _loss(results: list, counted: list[bool], weights: list[torch.Tensor]) -> torch.Tensor:
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    parts = [(r.double() * w).sum() for r, w in zip([r for r, counts in zip(tensors, counted) if counts], weights)]
    return sum(parts[1:], parts[0])


def _leaves(arguments: Any) -> list[torch.Tensor]:
    found = {id(x): x for x in tree_flatten(arguments)[0] if isinstance(x, torch.Tensor) and x.dtype == torch.float64}
    return list(found.values())


def _eager(op: Callable, case: Case) -> tuple[list[torch.Tensor] | None, Program | None]:
    """The gradients by torch: of the leaves, then of the weights, where there are any."""
    args, kwargs = case.filled()
    leaves = _leaves((args, kwargs))
    for leaf in leaves:
        leaf.requires_grad_()
    inside = {id(leaf): leaf.clone() for leaf in leaves}  # so that the call may write them
    given, named = tree_map(lambda x: inside.get(id(x), x), (args, kwargs))
    torch.manual_seed(1234)
    results = tree_flatten(op(*given, **named))[0]
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    if any(t.layout != torch.strided for t in tensors + leaves):
        return None, None
    counted = [t.requires_grad for t in tensors]
    if not any(counted):
        return None, None
    generator = torch.Generator().manual_seed(7)
    weights = [torch.randn(t.shape, dtype=torch.float64, generator=generator).requires_grad_(case.order == 2) for t, counts in zip(tensors, counted) if counts]
    loss = _loss(results, counted, weights)
    wanted = leaves if case.order == 1 else leaves + weights
    gradients = torch.autograd.grad(loss, wanted, create_graph=case.order == 2, allow_unused=True)
    if case.order == 2:
        tracked = [(g, _seed(k, g)) for k, g in enumerate(gradients) if g is not None and g.requires_grad]
        if not tracked:
            return None, None
        gradients = torch.autograd.grad(sum((g * s).sum() for g, s in tracked), wanted, allow_unused=True)
    found = [torch.zeros_like(w) if g is None else g.detach() for w, g in zip(wanted, gradients)]
    return found, Program(op, counted, [w.detach() for w in weights])



def _seed(number: int, like: torch.Tensor) -> torch.Tensor:
    return torch.randn(like.shape, dtype=like.dtype, generator=torch.Generator().manual_seed(100 + number))


def _compared(op: Callable, program: Program, case: Case, want: list[torch.Tensor]) -> Verdict:
    args, kwargs = case.filled()
    wanted = _leaves((args, kwargs)) + (program.weights if case.order == 2 else [])
    captured = _captured(program, args, kwargs)
    if isinstance(captured, Verdict):
        return captured
    try:
        got = _gradients(*captured, wanted, case.order)
    except reference.Refused as refusal:
        return Verdict("opaque" if "opaque" in str(refusal) else "refused", str(refusal))
    except reference.Incomplete as lack:
        return Verdict("refused", str(lack))
    except Exception as error:  # noqa: BLE001: a gradient that does not run is a wrong one
        return Verdict("opaque" if "does not run 'opaque'" in str(error) else "wrong", f"{type(error).__name__}: {error}")
    differences = [(k, what) for k, (ours, theirs) in enumerate(zip(got, want)) if (what := _difference(ours, theirs, case))]
    if differences and case.fill == "extremes":
        spread = _spread(op, case, want)
        differences = [(k, what) for k, what in differences if what and _difference(got[k], want[k], case, spread[k])]
    return Verdict("wrong", f"of operand {differences[0][0]}: {differences[0][1]}") if differences else Verdict("native")


def _spread(op: Callable, case: Case, want: list[torch.Tensor]) -> list[torch.Tensor]:
    """By how much torch's own gradients move where operands move by a rounding: what cancellation has left of them."""
    moved, _ = _eager(op, dataclasses.replace(case, nudged=True))
    return [torch.nan_to_num((m - w).abs(), nan=math.inf) for m, w in zip(moved or want, want)]


def _captured(program: Program, args: tuple, kwargs: dict) -> tuple[str, list, list[torch.Tensor]] | Verdict:
    """The text of the one graph that the program is, its inputs, and what they held."""
    graphs: list[tuple[str, list, list[torch.Tensor]]] = []

    def backend(graph: torch.fx.GraphModule, inputs: list) -> Callable:
        graphs.append((graph.tenon_graph.tir(), inputs, [torch.as_tensor(x).detach().clone(memory_format=torch.contiguous_format) for x in inputs]))
        return graph.forward

    tenon.reset()
    with torch.no_grad(), contextlib.suppress(Exception):  # what the graph gives counts, not whether it ran
        torch.manual_seed(1234)
        tenon.compile(program.__call__, backend=backend, dynamic=False)(args, kwargs, program.weights)
    stats = tenon.stats()
    if len(graphs) != 1 or stats["graph_breaks"] or stats["eager_fallbacks"]:
        return Verdict("refused", f"not captured whole: {len(graphs)} graphs")
    return graphs[0]


def _gradients(text: str, inputs: list, held: list[torch.Tensor], wanted: list[torch.Tensor], order: int) -> list[torch.Tensor]:
    """The reference's gradients of the wanted tensors, which are among the graph's inputs; zeros for those that are not."""
    graph = reference.Gradients(text, order)
    floats = [k for k, x in enumerate(held) if x.is_floating_point()]
    place = {id(inputs[k]): n for n, k in enumerate(floats)}
    one = torch.ones((), dtype=torch.float64)
    given, results = [*held, one], [torch.empty_like(held[k]) for k in floats]
    if order == 2:
        seeds = {id(x): _seed(k, x) for k, x in enumerate(wanted)}
        given += [seeds.get(id(inputs[k]), torch.zeros_like(held[k])) for k in floats]
        results.append(torch.empty_like(one))
    graph.run(given, results)
    return [results[place[id(x)]] if id(x) in place else torch.zeros_like(x) for x in wanted]


def _difference(got: torch.Tensor, want: torch.Tensor, case: Case, spread: torch.Tensor | None = None) -> str | None:
    """Where the two differ by more than rounding, and by more than 100 times `spread`. At the ends of ranges sums in another order differ in whether they are infinite or no
    number, and torch's second derivatives overflow in places of their own."""
    far = case.fill in ("extremes", "endless")
    scale = _scale(want)
    unlike = ~torch.isclose(got, want, rtol=1e-6 if far else 1e-8, atol=(1e-9 if far else 1e-11) * scale, equal_nan=True)
    if far:
        unlike &= torch.isfinite(want) if case.order == 2 else torch.isfinite(want) | torch.isfinite(got)
    if spread is not None:
        unlike &= ~((got - want).abs() <= 100 * spread)
    if not unlike.any():
        return None
    place = tuple(unlike.nonzero()[0].tolist())
    return f"{got[place].item()} instead of {want[place].item()} at {list(place)}"


def _scale(x: torch.Tensor) -> float:
    finite = x[torch.isfinite(x)]
    return max(1.0, finite.abs().max().item()) if finite.numel() else 1.0
