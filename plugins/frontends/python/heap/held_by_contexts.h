// What the ctx of a torch.autograd.Function holds besides what torch knows of: its backward reads that as it is when gradients are computed.
#pragma once

#include <span>
#include <vector>

#include "python/heap/heap.h"

namespace tenon::python {

struct HeldByContext {
  std::vector<PyObject*> tensors;  // stand-ins; borrowed
  std::vector<Ref> objects;        // born in the capture, which the program may change
};

/// All that is reached from attributes of `context` over what was born in the capture, itself included. What is older is guarded where it is read.
HeldByContext held_by_context(Heap& heap, PyObject* context, std::span<PyObject* const> attributes);

}  // namespace tenon::python
