// Records what the catalogue lacks: a call that torch or NumPy makes again on every run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "python/foreign/foreign_names.h"
#include "python/opaque/opaque_call.h"
#include "python/recording/graph/history.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/memory/late_sizes.h"
#include "python/recording/memory/recorded_results.h"
#include "python/recording/numbers/computed_numbers.h"
#include "python/recording/opaque/opaque_sizes.h"
#include "python/recording/opaque/opaque_twins.h"
#include "python/recording/opaque/opaque_use.h"

namespace tenon::python {

class OpaqueCalls {
 public:
  using Index = StandIns::Index;
  using Warning = std::function<void(const std::string& function)>;

  /// `before_it_may_warn`: as Recorder says.
  OpaqueCalls(RecordedGraph& graph, History& history, KnownValues& known, RecordedTrace& trace, ComputedNumbers& computed, RecordedResults& results, LateSizes& late,
              const Warning& before_it_may_warn)
      : core_(graph),
        history_(history), trace_(trace), computed_(computed), results_(results), late_(late), before_it_may_warn_(before_it_may_warn), sizes_(graph), twins_(graph, known) {}

  Ref record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
  Ref record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, OpaqueUse& use);
  /// A ufunc of operands whose size depends on data: it gives their common shape, whatever that is.
  Ref record_late(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands);
  /// A function that gives a vector of as many elements as it finds.
  Ref record_found(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands);

  /// As Recorder says.
  void keep_next_run(Ref keeper) { keeper_ = std::move(keeper); }
  Ref kept_run();
  std::vector<Ref> record_gradients(PyObject* function, PyObject* args, std::span<const Index> of, bool keeps);

  /// The calls that nodes of the graph refer to.
  std::vector<std::shared_ptr<OpaqueCall>> take() { return std::move(calls_); }

 private:
  std::optional<ir::ValueId> number_operand(PyObject* object);
  ir::ValueId with_slope_of_zero(ir::ValueId drawn, std::span<const Index> operands);
  void fix_numbers_in(PyObject* object);
  std::vector<ir::ValueId> add_node(const ForeignFunction& function, std::shared_ptr<OpaqueCall> call, std::vector<ir::ValueId> values, std::vector<ir::Type> types,
                                    OpaqueUse& use);
  std::vector<ir::ValueId> add_call(const std::string& target, std::shared_ptr<OpaqueCall> call, std::vector<ir::ValueId> values, std::vector<ir::Type> types,
                                    bool random, bool linear = false);
  Ref with_strides_of_draw(Ref answer, PyObject* callable, std::span<const Index> operands, PyObject* args, PyObject* kwargs);
  Ref wrap_run(ir::ValueId run);
  Ref wrap_late(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands);

  RecordedGraph& core_;
  History& history_;
  RecordedTrace& trace_;
  ComputedNumbers& computed_;
  RecordedResults& results_;
  LateSizes& late_;
  const Warning& before_it_may_warn_;
  OpaqueSizes sizes_;
  OpaqueTwins twins_;
  std::vector<std::shared_ptr<OpaqueCall>> calls_;
  Ref keeper_;  // of the next call
  std::optional<ir::ValueId> run_;  // of the last that was kept
};

}  // namespace tenon::python
