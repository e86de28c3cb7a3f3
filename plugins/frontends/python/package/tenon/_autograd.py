"""Compiled segments as nodes of torch's autograd graph."""

import torch


class Segment(torch.autograd.Function):
    """One call of a compiled segment: from inputs that require grad to results that do, which have been computed.

    `call` gives the gradients, from the tensors that torch keeps for it.
    """

    @staticmethod
    def forward(ctx, call, kept, results, *inputs):
        ctx.call = call
        ctx.save_for_backward(*kept)
        return results

    @staticmethod
    def backward(ctx, *tangents):
        kept = ctx.saved_tensors  # torch's own errors: freed, or written since
        tangents = tuple(t.contiguous() for t in tangents)
        if torch.is_grad_enabled():  # the gradients are to have gradients
            return (None, None, None, *ctx.call.again(kept, tangents))
        return (None, None, None, *ctx.call.gradients(kept, tangents))


class HandOn(torch.autograd.Function):
    """Gives one input its gradient, and the node behind it those of the others."""

    @staticmethod
    def forward(ctx, *inputs):
        ctx.set_materialize_grads(False)
        return tuple(x.view_as(x) for x in inputs)

    @staticmethod
    def backward(ctx, *gradients):
        return gradients


def add_node(call, kept, results, order, *inputs):
    """Makes the results those of one node. `order`: in which torch would come by the gradients of the inputs."""
    if any(x._backward_hooks or x._post_accumulate_grad_hooks for x in inputs):  # whoever looks sees them come one after the other
        inputs = list(inputs)
        for first in range(len(order) - 1, -1, -1):
            rest = order[first:]
            for at, x in zip(rest, HandOn.apply(*(inputs[at] for at in rest))):
                inputs[at] = x
    Segment.apply(call, kept, results, *inputs)
