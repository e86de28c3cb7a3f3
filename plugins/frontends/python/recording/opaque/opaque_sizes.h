// What an opaque call gives for sizes that vary: found out by asking torch for some of them, and checked at every run.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/opaque/opaque_use.h"

namespace tenon::python {

class OpaqueSizes {
 public:
  using Index = StandIns::Index;

  explicit OpaqueSizes(RecordedGraph& graph) : graph_(graph.graph), symbols_(graph.symbols), stand_ins_(graph.stand_ins) {}

  /// The shapes of the results over the sizes that vary, where each is a size of an operand or a constant for the present sizes and for others.
  /// A run whose results have other shapes is refused. Nothing where that is not so, or nothing varies. `results`: for the present sizes.
  std::optional<std::vector<ir::Shape>> shapes(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args,
                                               PyObject* kwargs, const OpaqueUse& use, std::span<const Ref> results);
  /// The arguments with the floats that vary as what they are now, times a factor.
  Ref with_floats(PyObject* arguments, double factor);

 private:
  using OtherSize = std::int64_t (*)(std::int64_t size, std::size_t which);
  /// By one kind of other sizes; `taken` becomes true where the call takes these.
  std::optional<std::vector<ir::Shape>> shapes_by_trials(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args,
                                                         PyObject* kwargs, const OpaqueUse& use, std::span<const Ref> results, OtherSize change, bool& taken);
  std::int64_t elements_of_operands(std::span<const Index> operands) const;

  ir::Graph& graph_;
  Symbols& symbols_;
  StandIns& stand_ins_;
};

}  // namespace tenon::python
