#include "python/recording/opaque/drawing_order.h"

#include "python/objects/graph_break.h"
#include "python/results/twins.h"

namespace tenon::python {

MemoryOrder drawing_order(const StandIn& operand, bool written, const ForeignFunction& function) {
  const bool plain = is_row_major(operand.shape, operand.strides);
  MemoryOrder order = written && !plain ? memory_order(operand.shape, operand.strides) : order_of_like(operand.shape, operand.strides);
  if (order.empty() && function.has(Trait::row_major_draws)) return {};
  if (order.empty() && !operand.shape.empty()) throw GraphBreak("random numbers in the order of a tensor with gaps");
  return order;
}

bool names_a_generator(PyObject* kwargs) {
  PyObject* generator = kwargs ? PyDict_GetItemString(kwargs, "generator") : nullptr;
  return generator && generator != Py_None;
}

}  // namespace tenon::python
