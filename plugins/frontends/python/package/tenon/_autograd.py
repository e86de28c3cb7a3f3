"""Compiled segments as nodes of torch's autograd graph."""

import torch

_users_of_storage = getattr(torch._C, "_storage_Use_Count", None)


class Segment(torch.autograd.Function):
    """One call of a compiled segment: from inputs that require grad to results that do, which have been computed.

    `call` gives the gradients, from the tensors that torch keeps for it.
    """

    @staticmethod
    def forward(ctx, call, kept, results, *inputs):
        ctx.call = call
        ctx.own = None
        if call.asked_once():
            ctx.save_for_backward(*kept)
        else:
            ctx.own = [(tensor.detach(), tensor._version) for tensor in kept]  # which counts writes with the tensor
        ctx.leaves = [(tensor, tensor.detach()) for tensor in kept if tensor.is_leaf and tensor.requires_grad]
        ctx.set_materialize_grads(False)
        return results

    @staticmethod
    def backward(ctx, *tangents):
        try:
            kept = ctx.saved_tensors if ctx.own is None else _unwritten(ctx.own)  # torch's own errors: freed, if of nothing, or written since
        except RuntimeError as error:
            if "modified by an inplace operation" in str(error):
                ctx.call.refuse_written(str(error))
            raise
        _require_same_data(ctx.leaves)
        tangents = tuple(t if t is None else t.contiguous() for t in tangents)
        if all(t is None for t in tangents) and not ctx.call.has_functions():
            return (None,) * len(ctx.needs_input_grad)
        if any(t is not None and _is_batch(t) for t in tangents):
            return (None, None, None, *each_of_batch(lambda *plain: _gradients(ctx.call, kept, plain), tangents))
        return (None, None, None, *_gradients(ctx.call, kept, tangents))


def _gradients(call, kept, tangents):
    if torch.is_grad_enabled():  # the gradients are to have gradients
        return call.again(kept, tangents)
    return call.gradients(kept, tangents)


def _unwritten(kept):
    """What is kept where torch lets go of nothing. What was written is refused: parts of gradients may have been computed before."""
    for tensor, version in kept:
        if tensor._version != version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: it is at "
                f"version {tensor._version}; expected version {version} instead."
            )
    return tuple(tensor for tensor, _ in kept)


def _require_same_data(leaves):
    """Memory that a leaf was given since the call as other ``.data``: where parameters are gathered for a while, it holds what the graph has read."""
    for leaf, before in leaves:
        if leaf.data_ptr() != before.data_ptr() and not _holds_the_same(leaf.detach(), before):
            raise RuntimeError(
                f"the data of a leaf variable, {leaf.dtype} of {tuple(leaf.shape)}, was replaced by other data before its gradients were computed, which a compiled graph cannot follow"
            )


def _holds_the_same(tensor, other):
    alike = (tensor.dtype, tensor.device, tensor.shape, tensor.stride()) == (other.dtype, other.device, other.shape, other.stride())
    return alike and tensor.is_contiguous() and torch.equal(tensor.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))


def _is_batch(tensor):
    return torch._C._functorch.is_batchedtensor(tensor) or torch._C._functorch.is_legacy_batchedtensor(tensor)


def _taken_apart(tensor):
    """A batch under torch's vmap as a tensor whose first dimension is that of the batch, and a function that puts one together: of the
    transform of torch.func, or of the older one behind is_grads_batched."""
    functions = torch._C._functorch
    if functions.is_batchedtensor(tensor):
        level = functions.maybe_get_level(tensor)
        return functions.get_unwrapped(tensor).movedim(functions.maybe_get_bdim(tensor), 0), lambda t: functions._add_batch_dim(t, 0, level)
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    if level != 1:
        raise RuntimeError("a compiled function takes no batches of batches of gradients")
    return torch._remove_batch_dim(tensor, level, 1, 0), lambda t: torch._add_batch_dim(t, 0, level)


def _of_dense(run, tangents):
    """The gradients for tangents of which some are sparse."""
    if not any(t is not None and t.layout is not torch.strided for t in tangents):
        raise RuntimeError("a compiled function takes no gradients that are of a subclass of torch.Tensor")
    made = run(*(t if t is None else t.to_dense().contiguous() for t in tangents))
    return made if isinstance(made, tuple) else (made,)


def each_of_batch(run, tangents):
    """The gradients for tangents of which some are batches: run(*tangents) for each."""
    apart = [None if t is None or not _is_batch(t) else _taken_apart(t) for t in tangents]
    batches = [part for part in apart if part is not None]
    if not batches:
        return _of_dense(run, tangents)
    made = []
    for at in range(len(batches[0][0])):
        plain = (t if part is None else part[0][at] for t, part in zip(tangents, apart))
        made.append(run(*(t if t is None or _is_batch(t) else t.contiguous() for t in plain)))
    made = [m if isinstance(m, tuple) else (m,) for m in made]
    return tuple(None if of_input[0] is None else batches[0][1](torch.stack(of_input)) for of_input in zip(*made))


# Without what Function.apply does for torch.func, under which nothing compiled runs.
_apply = torch._C._FunctionBase.__dict__["apply"].__get__(None, Segment)


class HandOn(torch.autograd.Function):
    """Gives one input its gradient, and the node behind it those of the others."""

    @staticmethod
    def forward(ctx, *inputs):
        ctx.set_materialize_grads(False)
        return tuple(x.view_as(x) for x in inputs)

    @staticmethod
    def backward(ctx, *gradients):
        return gradients


class Leading(torch.autograd.Function):
    """Makes a tensor the result of what gave another one."""

    @staticmethod
    def forward(ctx, results, node):
        return results

    @staticmethod
    def backward(ctx, gradient):
        return None, gradient


_apply_leading = torch._C._FunctionBase.__dict__["apply"].__get__(None, Leading)


def _placeholder(like):
    """A tensor of its type and shape, all in one element."""
    return torch.empty_strided(like.shape, (0,) * like.dim(), dtype=like.dtype, device=like.device)


def leading_to(tensor):
    """A tensor whose gradient that of `tensor` is, as it is now: whatever is written to `tensor` later."""
    leading = _placeholder(tensor)
    _apply_leading((leading,), tensor)
    return leading


def add_node(call, kept, results, unseen, order, *inputs):
    """Makes the results those of one node. `unseen`: by result, whether only nodes know it. `order`: in which torch would come by the gradients
    of the inputs that are leaves for all the segment knows; others come behind them."""
    leaves = inputs[: len(order)]
    if any(x._backward_hooks or x._post_accumulate_grad_hooks for x in leaves):  # whoever looks sees them come one after the other
        inputs = list(inputs)
        for first in range(len(order) - 1, -1, -1):
            rest = order[first:]
            for at, x in zip(rest, HandOn.apply(*(inputs[at] for at in rest))):
                inputs[at] = x
    if len(results) == 1:
        _apply(call, kept, results, *inputs)
        return
    # Each has a node of its own in front: who watches one of them sees nothing of the others.
    nodes = tuple(result if alone else _placeholder(result) for result, alone in zip(results, unseen))
    _apply(call, kept, nodes, *inputs)
    for result, node in zip(results, nodes):
        if result is not node:
            _apply_leading((result,), node)


class Spent(torch.autograd.Function):
    """A result whose gradients its segment has computed, and let go of what they needed."""

    @staticmethod
    def forward(ctx, results, *tracked):
        return results

    @staticmethod
    def backward(ctx, *tangents):
        with torch.enable_grad():
            x = torch.zeros((), requires_grad=True)
            y = x * x
        y.backward()
        y.backward()  # torch's own error


def add_spent_node(result, *tracked):
    """Makes `result` one of torch's autograd graph that was walked through already. `tracked`: what it may have been computed from, which gets its
    gradients in a walk after this node, and so none."""
    _apply_spent((result,), *tracked)


_apply_spent = torch._C._FunctionBase.__dict__["apply"].__get__(None, Spent)


class Refused(torch.autograd.Function):
    """A gradient that torch does not differentiate."""

    @staticmethod
    def forward(ctx, results, message, *tracked):
        ctx.message = message
        return results

    @staticmethod
    def backward(ctx, *tangents):
        raise RuntimeError(ctx.message)


def add_refusing_node(gradient, message, *tracked):
    """Makes `gradient` one whose gradient torch refuses with these words. `tracked`: what it was computed for; where that is nothing, only a walk to all
    leaves comes to it."""
    _apply_refused((gradient,), message, *(tracked or (torch.zeros((), requires_grad=True),)))


_apply_refused = torch._C._FunctionBase.__dict__["apply"].__get__(None, Refused)


def has_memory_for_itself(tensor):
    """Whether a tensor without a past of its own is all that shows its memory. Unsure, it says no."""
    if type(tensor) is not torch.Tensor or tensor.requires_grad or tensor.is_inference() or tensor._is_view() or tensor._version != 0 or _users_of_storage is None:
        return False
    storage = tensor.untyped_storage()
    return storage.resizable() and storage.nbytes() == tensor.numel() * tensor.element_size() and _users_of_storage(storage._cdata) == 2


class Both(torch.autograd.Function):
    """Hands a gradient on to two."""

    @staticmethod
    def forward(ctx, results, *nodes):
        ctx.set_materialize_grads(False)
        return results

    @staticmethod
    def backward(ctx, gradient):
        return None, gradient, gradient


_apply_both = torch._C._FunctionBase.__dict__["apply"].__get__(None, Both)


def add_refusal_beside(gradient, message):
    """Has a walk to all leaves come to what torch refuses to differentiate too; one to named inputs goes by."""
    refused = _placeholder(gradient)
    add_refusing_node(refused, message)
    _apply_both((gradient,), leading_to(gradient), refused)
