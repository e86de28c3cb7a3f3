// What the graph is recorded for: bools that each run checks before anything is done.
#pragma once

#include <optional>
#include <vector>

#include "python/recording/graph/recorded_graph.h"

namespace tenon::python {

class Assumptions {
 public:
  /// `truth_to_come`: the outcome with which the program goes on, where it does nothing but raise with the other one (Recorder::truth_to_come).
  Assumptions(RecordedGraph& graph, std::optional<bool>& truth_to_come) : core_(graph), truth_to_come_(truth_to_come) {}

  /// Whether anything may be assumed where the program is.
  bool allowed() const { return core_.symbols.may_assume() && !core_.in_branch(); }
  /// Whether an outcome is to come that may be assumed.
  bool expected() const { return truth_to_come_ && allowed(); }
  void add(ir::ValueId condition) { all_.push_back(condition); }
  /// Goes on as if a stand-in's truth were this; false where that is not possible.
  bool assume(PyObject* stand_in, bool truth);
  /// Takes the outcome that is to come for that of a value of the graph.
  bool assume_expected(ir::ValueId value);

  bool empty() const { return all_.empty(); }
  std::vector<ir::ValueId> take() { return std::move(all_); }

 private:
  RecordedGraph& core_;
  std::optional<bool>& truth_to_come_;
  std::vector<ir::ValueId> all_;
};

}  // namespace tenon::python
