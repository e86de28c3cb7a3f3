// What the program asks of tensors besides their elements: sizes, strides, dtypes, whether two share memory.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/ops/foreign/foreign_call.h"
#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/memory/late_sizes.h"
#include "python/recording/memory/recorded_results.h"

namespace tenon::python {

class MetadataAnswers {
 public:
  using Index = StandIns::Index;

  MetadataAnswers(RecordedGraph& graph, RecordedResults& results, LateSizes& late)
      : core_(graph), graph_(graph.graph), symbols_(graph.symbols), stand_ins_(graph.stand_ins), results_(results), late_(late) {}

  /// What a function gives that reads metadata.
  Ref answer(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  /// Whether two arrays may share memory, where that follows from how they were made: one and the same, or one made by the program.
  std::optional<Ref> answer_sharing(PyObject* args, PyObject* kwargs);
  /// len(); empty where the stand-in's own answer is right.
  Ref length(PyObject* stand_in);

 private:
  std::optional<Ref> answer_size(std::string_view name, const StandIn& self, PyObject* args, PyObject* kwargs);
  std::optional<Ref> answer_strides(std::string_view name, Index index, PyObject* args, PyObject* kwargs);
  bool asks_for_another_order(PyObject* kwargs, std::span<const Index> operands) const;
  Ref size_tuple(ops::Flavour flavour, std::span<const ir::Dim> shape);
  void fix_sizes(std::span<const Index> operands);

  RecordedGraph& core_;
  ir::Graph& graph_;
  Symbols& symbols_;
  StandIns& stand_ins_;
  RecordedResults& results_;
  LateSizes& late_;
};

}  // namespace tenon::python
