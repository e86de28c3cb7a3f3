"""The transforms of torch.func by gradients, which torch does with tensors that wrap others: a capture follows these."""
from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from ._torch_in_python import _holds


def forget_leaves(leaves: list, unwritten: list) -> None:
    """Makes constants of leaves that the program has made: what was computed from them alone requires no grad from then on.

    A capture records that, and ends before the call where one of the others was written or is a view; nobody else calls it.
    """
    raise NotImplementedError


def remember_leaves(leaves: list) -> None:
    """Makes leaves that were forgotten, and what was computed from them before that, what they were.

    A capture records that; nobody else calls it.
    """
    raise NotImplementedError


def leave_to_torch() -> None:
    """Ends the graph before what was begun.

    A capture does that; nobody else calls it.
    """
    raise NotImplementedError


class Transformed:
    """A function that was called on arguments of which some are what torch.func differentiates it by. `is_refused`: only torch does that, or refuses it."""

    def __init__(self, func: Any, argnums: Any, has_aux: bool, args: tuple, kwargs: dict) -> None:
        self.outer = torch.is_grad_enabled()  # whether what leaves the function may have a gradient
        self.has_aux = has_aux
        self.args = list(args)
        self.primals: list = []
        self.leaves: list = []  # of these: what no other tensor that requires grad leads to
        self.copies: list = []  # and the others
        self.is_refused = False
        numbers = range(len(args)) if argnums is None else (argnums if isinstance(argnums, tuple) else (argnums,))
        for number in numbers:
            if number < -len(args) or number >= len(args) or type(number) is not int:
                self.is_refused = True
                return
        self.specs = []
        with torch.enable_grad():
            for number in numbers:
                self.args[number] = self._primals_of(args[number])
            self.is_one = type(argnums) is int
            if not self.is_refused:
                self._call(func, kwargs)

    def _primals_of(self, arg: Any) -> Any:
        tensors, spec = tree_flatten(arg)
        primals = []
        for x in tensors:
            if not isinstance(x, torch.Tensor) or not x.is_floating_point():
                self.is_refused = True
            elif self.outer and x.requires_grad:
                primals.append(x.clone())
                self.copies.append(primals[-1])
            else:
                primals.append(x.detach().requires_grad_())
                self.leaves.append(primals[-1])
        self.primals.extend(primals)
        self.specs.append(spec)
        return arg if self.is_refused else tree_unflatten(primals, spec)

    def _call(self, func: Any, kwargs: dict) -> None:
        given = func(*self.args, **kwargs)
        self.aux = None
        if self.has_aux:
            if type(given) is not tuple or len(given) != 2:
                self.is_refused = True
                return
            given, self.aux = given
        self.output = given
        self.outputs, self.output_spec = tree_flatten(given)
        for output in self.outputs:
            if not isinstance(output, torch.Tensor) or not output.is_floating_point() or _holds(self.primals, output):
                self.is_refused = True
        for other in tree_flatten(self.aux)[0]:
            if _holds(self.primals, other):
                self.is_refused = True

    def gradients(self, cotangents: list, create_graph: bool) -> list:
        """By primal."""
        outputs = []
        given = []
        for output, cotangent in zip(self.outputs, cotangents):
            if output.requires_grad:
                outputs.append(output)
                given.append(cotangent)
        if not outputs:
            return [torch.zeros_like(x) for x in self.primals]
        with torch.enable_grad():
            found = torch.autograd.grad(outputs, self.primals, given, retain_graph=True, create_graph=create_graph, allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for g, x in zip(found, self.primals)]

    def by_argument(self, values: list) -> Any:
        """Values by primal, as the arguments were given."""
        trees = []
        at = 0
        for spec in self.specs:
            trees.append(tree_unflatten(values[at : at + spec.num_leaves], spec))
            at += spec.num_leaves
        return trees[0] if self.is_one else tuple(trees)

    def plain(self, tree: Any) -> Any:
        """What leaves the function, after its leaves were forgotten: without a gradient where grad mode was off around it."""
        if self.outer:
            return tree
        tensors, spec = tree_flatten(tree)
        return tree_unflatten([t.detach() if isinstance(t, torch.Tensor) and t.requires_grad else t for t in tensors], spec)


def grad_and_value(func: Any, argnums: Any, has_aux: bool, args: tuple, kwargs: dict) -> Any:
    """``torch._functorch.eager_transforms.grad_and_value_impl``."""
    call = Transformed(func, argnums, has_aux, args, kwargs)
    if call.is_refused or not isinstance(call.output, torch.Tensor) or call.output.dim() != 0:
        return NotImplemented
    gradients = call.gradients([None], True)
    forget_leaves(call.leaves, call.copies)
    found = call.plain(call.by_argument(gradients))
    output = call.plain(call.output)
    return found, (output, call.plain(call.aux)) if has_aux else output


def grad(func: Any, argnums: Any, has_aux: bool, args: tuple, kwargs: dict) -> Any:
    """``torch._functorch.eager_transforms.grad_impl``."""
    results = grad_and_value(func, argnums, has_aux, args, kwargs)
    if results is NotImplemented:
        return NotImplemented
    return (results[0], results[1][1]) if has_aux else results[0]


def vjp(func: Any, *primals: Any, argnums: Any = None, has_aux: bool = False) -> Any:
    """``torch._functorch.eager_transforms._vjp_with_argnums``."""
    call = Transformed(func, argnums, has_aux, primals, {})
    if call.is_refused or not call.outputs:
        return NotImplemented
    forget_leaves(call.leaves, call.copies + call.outputs)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: Any = None) -> Any:
        tensors, spec = tree_flatten(cotangents)
        if spec != call.output_spec or not retain_graph:
            leave_to_torch()
        for cotangent in tensors:
            if not isinstance(cotangent, torch.Tensor):
                leave_to_torch()
        is_tracked = torch.is_grad_enabled() if create_graph is None else create_graph
        remember_leaves(call.leaves)
        gradients = call.gradients(tensors, is_tracked)
        forget_leaves(call.leaves, call.copies)
        return call.by_argument(gradients)

    results = call.plain(tree_unflatten([output.clone() for output in call.outputs], call.output_spec))  # which the program may write
    return (results, vjp_fn, call.plain(call.aux)) if has_aux else (results, vjp_fn)


MOST_ROWS = 64  # of a Jacobian, each a walk


def jacobian(function: Any, *args: Any) -> Any:
    """What ``torch.func.jacrev`` has made of a function, called: by output, then by argument."""
    variables = dict(zip(function.__code__.co_freevars, function.__closure__))
    func, argnums, has_aux = [variables[name].cell_contents for name in ("func", "argnums", "has_aux")]
    call = Transformed(func, argnums, has_aux, args, {})
    if call.is_refused or not call.outputs:
        return NotImplemented
    with torch.enable_grad():
        count = 0
        for output in call.outputs:
            count += output.numel()
        if count > MOST_ROWS:
            return NotImplemented
        blocks = []
        for number, output in enumerate(call.outputs):
            rows = []
            for place in range(output.numel()):
                cotangents = [torch.zeros_like(o) for o in call.outputs]
                one = torch.arange(output.numel()) == place
                cotangents[number] = one.to(output.dtype).view(output.shape)
                rows.append(call.gradients(cotangents, True))
            by_primal = []
            for at, primal in enumerate(call.primals):
                shape = output.shape + primal.shape
                by_primal.append(torch.stack([row[at] for row in rows]).view(shape) if rows else primal.new_zeros(shape))
            blocks.append(by_primal)
    forget_leaves(call.leaves, call.copies)
    found = tree_unflatten([call.plain(call.by_argument(block)) for block in blocks], call.output_spec)
    return (found, call.plain(call.aux)) if has_aux else found
