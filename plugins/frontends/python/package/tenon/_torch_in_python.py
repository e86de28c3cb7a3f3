"""What torch does in C, in Python: a capture follows it. ``NotImplemented`` is for what only the original does."""
from __future__ import annotations

from typing import Any

import torch

from tenon._hooks import Hooks, ModuleNode, functions_may_leave, has_hooks, is_gradient, of_leaf, on_accumulated, reading_what_changes, track_function, track_leaving
from tenon._torch_gradients import Again, Called


class Context:
    """What the ``forward`` of a function may do with its ``ctx``."""

    def __init__(self, args: tuple) -> None:
        self.needs_input_grad = tuple([isinstance(a, torch.Tensor) and a.requires_grad for a in args])
        self.to_save: tuple = ()
        self.saved_for_forward: tuple = ()
        self.dirty_tensors: tuple = ()
        self.non_differentiable: tuple = ()
        self.materialize_grads = True

    @property
    def saved_tensors(self) -> tuple:
        return self.to_save

    def save_for_backward(self, *tensors: Any) -> None:
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: torch.Tensor) -> None:
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: torch.Tensor) -> None:
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value


def apply_function(cls: type[torch.autograd.Function], *args: Any) -> Any:
    """``cls.apply(*args)``: its results, and where a gradient is wanted what a walk must know of it."""
    ctx = Context(args)
    tracked = torch.is_grad_enabled() and True in ctx.needs_input_grad
    with torch.no_grad():
        if cls.setup_context is torch.autograd.Function.setup_context:
            outputs = cls.forward(ctx, *args)
        else:
            outputs = cls.forward(*args)
            cls.setup_context(ctx, args, outputs)
            if _saves_unchanged_input(outputs, args, ctx):
                return NotImplemented
        several = type(outputs) is tuple
        results = tuple([_as_output(output, args, ctx, tracked) for output in (outputs if several else (outputs,))])
        if tracked and not _track(cls, ctx, args, results):
            return NotImplemented
        return results if several else results[0]


def _track(cls: type[torch.autograd.Function], ctx: Context, args: tuple, results: tuple) -> bool:
    """Has the walks of this graph that come to the results of a function evaluate its ``backward``. False where torch must."""
    outputs = []
    for result in results:
        if not isinstance(result, torch.Tensor) or _holds(args, result) or _holds(outputs, result):
            return False
        outputs.append(result)
    if ctx.dirty_tensors or ctx.saved_for_forward or _has_two_backwards(cls) or cls in reading_what_changes:
        return False
    applied = Applied(cls, ctx, args, outputs)
    if applied.outputs and functions_may_leave():
        if not ctx.materialize_grads and len(applied.outputs) > 1:
            return False
        own = [value for name, value in ctx.__dict__.items() if name not in _OF_TORCH]
        track_leaving(
            applied, applied.inputs, applied.outputs, [t for t in ctx.to_save if t is not None], bool(ctx.to_save), _is_once_differentiable(cls),
            "zeros" if ctx.materialize_grads else "unknown", own,
        )
    elif applied.outputs:
        track_function(applied, applied.inputs, applied.outputs, [t for t in ctx.to_save if t is not None])
    return True


_ONCE = torch.autograd.function.once_differentiable(lambda ctx: None).__code__


def _is_once_differentiable(cls: type[torch.autograd.Function]) -> bool:
    backward = cls.vjp if cls.backward is torch.autograd.Function.backward else cls.backward
    return getattr(backward, "__code__", None) is _ONCE


_OF_TORCH = ("needs_input_grad", "to_save", "saved_for_forward", "dirty_tensors", "non_differentiable", "materialize_grads")


def _has_two_backwards(cls: type[torch.autograd.Function]) -> bool:
    return cls.backward is not torch.autograd.Function.backward and cls.vjp is not torch.autograd.Function.vjp


class Applied:
    """A function that was applied, and how gradients flow through it."""

    def __init__(self, cls: type[torch.autograd.Function], ctx: Context, args: tuple, outputs: list) -> None:
        self.cls = cls
        self.ctx = ctx
        self.wanted = ctx.needs_input_grad
        self.inputs = [a for a, wanted in zip(args, self.wanted) if wanted]
        self.results = outputs
        self.outputs = [o for o in outputs if o.is_floating_point() and not _holds(ctx.non_differentiable, o)]

    def gradients(self, given: list, create_graph: bool) -> Any:
        """Those of the inputs that require grad, from those of the outputs that do; None where torch would refuse what the program gives."""
        all_given = []
        for result in self.results:
            gradient = None
            for output, one in zip(self.outputs, given):
                if output is result:
                    gradient = one
            if gradient is None and self.ctx.materialize_grads:
                gradient = torch.zeros_like(result)
            all_given.append(gradient)
        backward = self.cls.vjp if self.cls.backward is torch.autograd.Function.backward else self.cls.backward
        with torch.set_grad_enabled(create_graph):
            found = backward(self.ctx, *all_given)
        if type(found) is not tuple:
            found = (found,)
        if len(found) < len(self.wanted):
            return None
        gradients = []
        for gradient, wanted in zip(found, self.wanted):
            if wanted:
                gradients.append(gradient)
        for gradient, x in zip(gradients, self.inputs):
            if gradient is not None and not is_gradient(gradient, x):
                return None
        for at in range(len(self.wanted), len(found)):
            if found[at] is not None:
                return None
        return gradients


def _saves_unchanged_input(outputs: Any, args: tuple, ctx: Context) -> bool:
    """Whether an input that is given as it is has been saved for a derivative, which torch refuses in ``setup_context``."""
    for output in outputs if type(outputs) is tuple else (outputs,):
        if isinstance(output, torch.Tensor) and not output.requires_grad and _holds(args, output) and not _holds(ctx.dirty_tensors, output):
            if _holds(ctx.to_save, output) or _holds(ctx.saved_for_forward, output):
                return True
    return False


def _holds(tensors: tuple, wanted: torch.Tensor) -> bool:
    for tensor in tensors:
        if tensor is wanted:
            return True
    return False


def _as_output(output: Any, args: tuple, ctx: Context, tracked: bool) -> Any:
    """An input that is given as it is becomes another tensor of the same memory, unless the function says that it has written it: where gradients are
    wanted the function's own, a view through which torch refuses writes."""
    if not isinstance(output, torch.Tensor) or not _holds(args, output) or _holds(ctx.dirty_tensors, output):
        return output
    return output.detach() if output.requires_grad and not tracked else output.view_as(output)


def walk(tensors: Any, gradients: Any, keep_graph: bool, create_graph: bool, to: tuple, may_miss: bool) -> tuple:
    """The gradients of tensors, or of the inputs of a function that was applied, by its number: pairs of a tensor and its gradient, by what is asked
    for, or by all leaves; of functions, beyond which the walk has not gone, the number, the gradients of its outputs and what :class:`Applied` says;
    of leaves, where one of them has hooks, a number (torch comes to those with higher ones first) and whether it is that; and gradients that torch
    gives without copies, each with the dimensions along which all elements are one.

    A capture records that; nobody else calls it.
    """
    raise NotImplementedError


def run_backward(
    tensors: tuple, grad_tensors: tuple, keep_graph: bool, create_graph: bool, inputs: tuple = (), allow_unreachable: bool = False, accumulate_grad: bool = False
) -> Any:
    """``torch._C._EngineBase.run_backward``: gives the gradients by `inputs`, or adds them to the `.grad` of these, or of all leaves."""
    if create_graph and accumulate_grad:
        return NotImplemented
    gradients, functions, turns, spread = walk(tensors, grad_tensors, keep_graph, create_graph, inputs, allow_unreachable)
    asked = False
    while functions:
        number, given, applied = functions.pop()  # the last that was applied: no walk to come leads to it
        if type(applied) in (Called, Again):
            applied.is_last = not keep_graph
        found = applied.gradients(_without_copies(given, spread, create_graph), create_graph)
        if found is None:
            return NotImplemented
        more, others, more_turns, more_spread = walk(number, found, keep_graph, create_graph, inputs, True)
        spread = spread + more_spread
        gradients = _joined(gradients, more)
        functions = _joined_functions(functions, others)
        turns = turns + more_turns
        asked |= type(applied) in (Applied, Hooks, ModuleNode)
    if not allow_unreachable:
        for _, gradient in gradients:
            if gradient is None:
                return NotImplemented
    hooked = [leaf for leaf, _, may_have in turns if may_have and has_hooks(leaf)]
    if hooked and asked:
        return NotImplemented  # which comes first, a hook of a leaf or what the program does on the way, only torch knows
    order = _by_turns(gradients, turns) if hooked else list(range(len(gradients)))
    if not accumulate_grad:
        results = _without_copies([gradient for _, gradient in gradients], spread, create_graph)
        for at in order:
            if _holds(hooked, gradients[at][0]) and results[at] is not None:
                results[at] = of_leaf(gradients[at][0], results[at], create_graph)
                if results[at] is None:
                    return NotImplemented
        return tuple(results)
    with torch.no_grad():
        for at in order:
            leaf, gradient = gradients[at]
            if gradient is None:
                continue
            if _holds(hooked, leaf):
                gradient = of_leaf(leaf, _without_copies([gradient], spread, False)[0], False)
                if gradient is None:
                    return NotImplemented
                gradient = gradient.clone()  # a hook may have kept the other one
            elif _holds([g for _, g in gradients[:at]], gradient):
                gradient = gradient.clone()
            if leaf.grad is None:
                leaf.grad = gradient
            else:
                leaf.grad.add_(gradient)
            if _holds(hooked, leaf) and not on_accumulated(leaf):
                return NotImplemented
    return ()


def _without_copies(gradients: list, spread: list, create_graph: bool) -> list:
    """The gradients as torch has them: what `sum` spreads is expanded, one element for many."""
    shown = list(gradients)
    with torch.set_grad_enabled(create_graph):
        for at in range(len(shown)):
            for gradient, dims in spread:
                if shown[at] is gradient:
                    part = gradient
                    for dim in dims:
                        part = part.narrow(dim, 0, 1)
                    shown[at] = part.clone().expand(gradient.shape)
                    break
    return shown


def _by_turns(gradients: list, turns: list) -> list:
    """Where the gradients of leaves are, in the order in which torch comes to them."""
    numbers = []
    for tensor, _ in gradients:
        number = -1
        for leaf, turn, _ in turns:
            if leaf is tensor:
                number = turn
        numbers.append(number)
    return sorted(range(len(gradients)), key=lambda at: -numbers[at])


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _joined(some: list, others: list) -> list:
    """The sums of gradients of the same tensors."""
    sums = list(some)
    for tensor, gradient in others:
        for at in range(len(sums)):
            if sums[at][0] is tensor:
                sums[at] = (tensor, _sum(sums[at][1], gradient))
                break
        else:
            sums.append((tensor, gradient))
    return sums


def _joined_functions(some: list, others: list) -> list:
    """The sums of gradients of the same functions, in the order in which these were applied."""
    sums = list(some)
    for number, gradients, applied in others:
        at = 0
        while at < len(sums) and sums[at][0] < number:
            at += 1
        if at < len(sums) and sums[at][0] == number:
            sums[at] = (number, [_sum(a, b) for a, b in zip(sums[at][1], gradients)], applied)
        else:
            sums.insert(at, (number, gradients, applied))
    return sums


def group_tensors(tensorlistlist: list[list[Any]], with_indices: bool = False) -> Any:
    """``torch.utils._foreach_utils._group_tensors_by_device_and_dtype`` of tensors of one dtype: the order of several groups is torch's own."""
    lists = [list(tensors) for tensors in tensorlistlist]
    if not lists or not lists[0]:
        return NotImplemented
    first = lists[0][0]
    for tensors in lists:
        if len(tensors) != len(lists[0]):
            return NotImplemented
    for tensor in lists[0]:
        if tensor.dtype is not first.dtype or tensor.device != first.device:
            return NotImplemented
    return {(first.device, first.dtype): (lists, list(range(len(lists[0]))) if with_indices else [])}


def check_and_unscale(grads: list, found_inf: torch.Tensor, inv_scale: torch.Tensor) -> None:
    """``torch._amp_foreach_non_finite_check_and_unscale_``: says in `found_inf`, which is 1 from the first time on, whether a gradient has an inf or NaN."""
    for grad in grads:
        found_inf.copy_(torch.where(torch.isfinite(grad).all(), found_inf, torch.ones_like(found_inf)))
        grad.copy_(torch.where(inv_scale == 1, grad, grad * inv_scale))


def update_scale(
    scale: torch.Tensor, growth_tracker: torch.Tensor, found_inf: torch.Tensor, growth_factor: float, backoff_factor: float, growth_interval: int
) -> torch.Tensor:
    """``torch._amp_update_scale_``: smaller after a step that was skipped, larger after so many that were not."""
    found = found_inf != 0
    tracker = growth_tracker + 1
    grows = tracker == growth_interval
    grown = (scale.double() * growth_factor).to(scale.dtype)
    kept = torch.where(grows & torch.isfinite(grown), grown, scale)
    scale.copy_(torch.where(found, (scale.double() * backoff_factor).to(scale.dtype), kept))
    growth_tracker.copy_(torch.where(found | grows, torch.zeros_like(growth_tracker), tracker))
    return scale


def assume(condition: torch.Tensor) -> bool:
    """Whether the graph may go on as if a tensor of one element were true, which each run checks before it changes anything.

    A capture answers that; nobody else calls it.
    """
    raise NotImplementedError


def maybe_step(scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer, optimizer_state: dict, *args: Any, **kwargs: Any) -> Any:
    """``GradScaler._maybe_opt_step``: that no gradient has an inf or NaN is what each run finds, or it is not one of this graph."""
    found = list(optimizer_state["found_inf_per_device"].values())
    if len(found) != 1 or not assume(found[0] == 0):
        return NotImplemented
    return optimizer.step(*args, **kwargs)
