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

  /// Another value of a symbol, of several that there are.
  using OtherSize = std::int64_t (*)(std::int64_t size, std::size_t which);

  /// The shapes of the results over the sizes that vary, where each is a constant, a size of an operand, or computed of one, for the present sizes and for others.
  /// A run whose results have other shapes is refused. Nothing where that is not so, or nothing varies. `results`: for the present sizes.
  std::optional<std::vector<ir::Shape>> shapes(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args, PyObject* kwargs,
                                               const OpaqueUse& use, std::span<const Ref> results);
  /// The arguments with the floats that vary as what they are now, times a factor.
  Ref with_floats(PyObject* arguments, double factor);

 private:
  struct Call {
    PyObject* callable;
    const ForeignFunction& function;
    std::span<const Index> operands;
    PyObject *args, *kwargs;
    const OpaqueUse& use;
  };
  struct Candidates {
    std::vector<ir::Dim> sizes, numbers;  // numbers: those among the arguments
    std::vector<std::size_t> varying;     // symbols in them
  };
  class Trials;

  std::optional<Candidates> candidates(const Call& call) const;
  bool try_sizes(Trials& trials, const Candidates& candidates, OtherSize change) const;
  std::optional<ir::Shape> shape_of(Trials& trials, const Candidates& candidates, std::size_t result) const;
  std::int64_t elements_of_operands(std::span<const Index> operands) const;

  ir::Graph& graph_;
  Symbols& symbols_;
  StandIns& stand_ins_;
};

}  // namespace tenon::python
