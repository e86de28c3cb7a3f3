// Views of memory whose size depends on data. The library is asked on twins of a made-up size; the layout that it gives must be one that the
// graph's own nodes give for every size.
#pragma once

#include <span>
#include <vector>

#include "core/ops/foreign/foreign_call.h"
#include "python/foreign/foreign_names.h"
#include "python/graph/captured_graph.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/memory/recorded_results.h"

namespace tenon::python {

/// What is not the same for every size throws GraphBreak.
class LateViews {
 public:
  using Index = StandIns::Index;

  LateViews(RecordedGraph& graph, RecordedResults& results)
      : core_(graph), results_(results) {}

  /// Whether what a call gives is nothing but elements of memory whose size depends on data.
  bool are_given(const ForeignFunction& function, PyObject* kwargs, const ops::ForeignResult& result, std::span<const Index> operands) const;
  /// The stand-ins of such results.
  Ref wrap(PyObject* callable, const ForeignFunction& function, const ops::ForeignResult& result, PyObject* args, PyObject* kwargs);
  /// How one leaves the graph: its layout follows from the sizes of the result that it views.
  void vary(TensorOutput& output, Index index);

  /// No size of a view may come to 0: the graph holds for that many elements only.
  void require_elements(const ir::Shape& shape);
  /// Throws unless the dimensions of a pointwise result lie in one order for every size of at least 2. A size of 1 is looked at by itself.
  void require_one_order(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands, const TensorSpec& made);

 private:
  const ViewLayout& layout_of(Index index);
  bool views(ir::ValueId from, ir::ValueId to) const;
  std::vector<SymbolId> late_symbols(const ir::Shape& shape) const;
  void require_several(const ir::Shape& shape);
  void require_one_layout(Index index, std::span<const Index> operands);
  bool is_alike_at_one(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> made);

  RecordedGraph& core_;
  RecordedResults& results_;
};

}  // namespace tenon::python
