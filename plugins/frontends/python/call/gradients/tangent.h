// A gradient that torch gives a native node, as its backward reads it.
#pragma once

#include "python/graph/captured_graph.h"
#include "python/library/torch_ref.h"

namespace tenon::python {

struct Tangent {
  TangentLayout layout = TangentLayout::none;
  void* tensor = nullptr;  // null where there is none
  TorchRef copy;           // in row-major order, where it is needed

  void* read() const { return copy ? copy.get() : tensor; }
  void copy_in_order(DType dtype);
};

/// The gradient of a result. Copied where it lies in no way that a backward may be compiled for.
Tangent tangent_of(void* tensor, const TensorOutput& result);

}  // namespace tenon::python
