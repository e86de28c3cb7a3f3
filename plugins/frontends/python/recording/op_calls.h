// One call of a library that writes nothing: nodes by the catalogue's op, else a call that the library makes again.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ops/foreign/foreign_call.h"
#include "python/foreign/foreign_names.h"
#include "python/recording/graph/history.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/memory/late_sizes.h"
#include "python/recording/memory/late_views.h"
#include "python/recording/memory/recorded_results.h"
#include "python/recording/memory/written_memory.h"
#include "python/recording/numbers/computed_numbers.h"
#include "python/recording/opaque/opaque_calls.h"
#include "python/recording/opaque/random_calls.h"

namespace tenon::python {

class OpCalls {
 public:
  using Index = StandIns::Index;

  OpCalls(RecordedGraph& graph, History& history, RecordedTrace& trace, ComputedNumbers& computed, RecordedResults& results, LateSizes& late, LateViews& late_views, WrittenMemory& memory,
          OpaqueCalls& opaque, RandomCalls& random)
      : core_(graph), graph_(graph.graph), builder_(graph.builder), symbols_(graph.symbols), stand_ins_(graph.stand_ins), present_(graph.present), history_(history),
        trace_(trace), computed_(computed), results_(results), late_(late), late_views_(late_views), memory_(memory), opaque_(opaque), random_(random) {}

  Ref record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands);
  /// The nodes of a call by the catalogue. Throws GraphBreak where it has none, and leaves no node then.
  ops::ForeignResult build(const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  /// An argument as a value of the graph; nothing for what is none. `weak`: numbers have no say about the dtype.
  std::optional<ir::ValueId> value_of(PyObject* object, ops::Flavour flavour, bool weak = true);

 private:
  std::optional<ops::ForeignResult> build_op(const ForeignFunction& function, PyObject* args, PyObject* kwargs, const std::string& not_opaque);
  void compute_in(std::span<const DType> loop, ops::ForeignCall& call);
  void require_runnable(const ForeignFunction& function, std::size_t first_node) const;
  void require_complex_elements(const ForeignFunction& function, std::span<const ir::ValueId> values) const;
  void note_matrix_of_rows(PyObject* wrapped, PyObject* args, std::span<const Index> operands);
  bool numpy_may_give_view(const ForeignFunction& function, std::size_t first_node, const ops::ForeignResult& result, std::span<const Index> operands) const;
  bool may_be_view(std::size_t first_node, const ops::ForeignResult& result, std::span<const Index> operands);
  bool shares_memory(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands);
  bool stays_inside(const ForeignFunction& function, PyObject* args, PyObject* kwargs) const;

  RecordedGraph& core_;
  ir::Graph& graph_;
  ops::NodeBuilder& builder_;
  Symbols& symbols_;
  StandIns& stand_ins_;
  PresentValues& present_;
  History& history_;
  RecordedTrace& trace_;
  ComputedNumbers& computed_;
  RecordedResults& results_;
  LateSizes& late_;
  LateViews& late_views_;
  WrittenMemory& memory_;
  OpaqueCalls& opaque_;
  RandomCalls& random_;
  std::vector<Index> operands_;  // tensors of the call that is being built
};

/// Whether a call takes random numbers from torch's generator, and does nothing else.
bool draws(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);

}  // namespace tenon::python
