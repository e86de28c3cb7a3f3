// Results whose size depends on data. Their stand-ins have a made-up size: torch and NumPy are asked nothing about them, so what is recorded
// of them must be dense, in memory of its own, and laid out in the same way for every size.
#pragma once

#include <span>
#include <vector>

#include "core/ops/foreign/foreign_call.h"
#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/memory/late_views.h"
#include "python/recording/memory/recorded_results.h"

namespace tenon::python {

class LateSizes {
 public:
  using Index = StandIns::Index;

  LateSizes(RecordedGraph& graph, RecordedResults& results, LateViews& views)
      : core_(graph), results_(results), views_(views) {}

  /// Breaks where a size of an operand depends on data.
  void refuse(std::span<const Index> operands) const;
  /// Breaks for such operands of what is not recorded as nodes from values, and what writes, but for the elements that a write to another tensor
  /// takes, for elements that a write names by plain numbers, for pointwise functions in place, and for torch's functions that write a tensor whose size is
  /// known.
  void refuse(const ForeignFunction& function, std::span<const Index> operands) const;
  /// Whether the layout of one of them may be another one for other sizes.
  bool layout_varies(std::span<const Index> operands) const;

  /// The stand-ins of results of nodes from `first_node` on.
  Ref wrap(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, const ops::ForeignResult& result, std::span<const Index> operands,
           std::size_t first_node);
  /// Throws where the layout is not the same for every size, or (not `known`) not known without asking the library.
  TensorSpec spec(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands, bool known);
  /// Finds which results of a function that NumPy writes in Python are views of an array that nobody has: so are those of any other number of
  /// elements.
  void find_hidden_bases(PyObject* wrapped, PyObject* callable, PyObject* args, PyObject* kwargs);

 private:
  Ref in_named_tuple(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::vector<Ref> made);

  RecordedGraph& core_;
  RecordedResults& results_;
  LateViews& views_;
};

}  // namespace tenon::python
