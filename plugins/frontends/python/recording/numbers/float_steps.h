// Floats that vary: computed before the graph runs, as steps of a tape; inputs of the graph where tensors meet them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"

namespace tenon::python {

class FloatSteps {
 public:
  FloatSteps(RecordedGraph& graph, RecordedInputs& inputs) : core_(graph), inputs_(inputs) {}

  /// A float that was there before the call: its stand-in, with the guards on it added; empty for one that is a constant.
  Ref input(PyObject* object, SourceId source, GuardSet& guards);
  /// Where a stand-in was read; none for one that was computed.
  SourceId source_of(PyObject* stand_in) const;

  /// The step that gives a number as a float; none where the graph computes it, or no float is it. What the number is made of is added to `roots`.
  std::optional<FloatTape::Position> step_of(PyObject* number, std::vector<std::string>& roots);
  /// The stand-in of what a new step gives; empty where it does not hold.
  Ref add(FloatTape::Step step, std::vector<std::string> roots);
  /// Empty where the graph computes one of them, or Python gives no float.
  Ref arithmetic(FloatTape::Op op, PyObject* a, PyObject* b);
  /// What a function gives of one or two numbers, as a float or a bool, and does nothing else: called before the graph runs. Empty where the graph computes one.
  Ref of_call(PyObject* callable, std::string_view name, std::span<const Ref> numbers);
  /// A function of the module math that Python itself computes before the graph runs; empty where it must be done with the values.
  Ref call(PyObject* callable, std::string_view name, PyObject* args);
  /// The graph's value of a float that is computed before it runs.
  ir::ValueId value_of(FloatTape::Position step);

 private:
  RecordedGraph& core_;
  RecordedInputs& inputs_;
  std::unordered_map<std::uint32_t, Ref> read_;  // by source: stand-ins of what was read there
  std::unordered_map<FloatTape::Position, ir::ValueId> values_;
};

/// Words of a step over others; short ones, since those of steps over steps double.
std::string words_of_step(std::string_view before, const std::string& left, std::string_view between, const std::string& right);

}  // namespace tenon::python
