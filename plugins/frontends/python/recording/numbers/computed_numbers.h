// Numbers that the graph computes: those born of tensors, and floats of a graph that is for use without its guards.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/ops/foreign/foreign_call.h"
#include "python/recording/graph/assumptions.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_trace.h"
#include "python/recording/numbers/float_steps.h"
#include "python/stand_ins/symbolic_scalar.h"

namespace tenon::python {

class ComputedNumbers {
 public:
  using Index = StandIns::Index;

  ComputedNumbers(RecordedGraph& graph, FloatSteps& floats, Assumptions& assumptions, RecordedTrace& trace)
      : builder_(graph.builder), bounds_(graph.bounds), symbols_(graph.symbols), stand_ins_(graph.stand_ins), state_(graph.state), floats_(floats), assumptions_(assumptions), trace_(trace) {}

  /// The stand-in of a number that the graph computes, traced as the call of Python that gives it.
  Ref made(ScalarValue value, const char* module, const char* function, const Ref& args);
  /// Where Python's functions of floats give infinity or nan they may have to raise: such numbers are for them.
  ir::ValueId where_finite(ir::ValueId number);

  /// Operands. What `result` is made of is added to it.
  ir::ValueId value_of(const ScalarValue& scalar) { return scalar.step ? floats_.value_of(*scalar.step) : scalar.value; }
  /// A float that is a stand-in, as a value of the graph.
  ir::ValueId scalar_operand(PyObject* object, ScalarValue& result);
  /// A float, an int, or one that the graph knows when it runs, as a 0-d value of float64.
  ir::ValueId float_operand(PyObject* object, ScalarValue& result);
  /// What is known of an int in any call; nothing of other numbers.
  std::optional<NumberBounds::Bounds> bounds_of(PyObject* number) const;
  /// An int of no more than this size either way, as a value of int64: of one that the graph computes, that is assumed. Nothing where it may not be.
  std::optional<ir::ValueId> bounded_int(PyObject* number, std::int64_t most, ScalarValue& result);
  /// The dtype that tensors decide on beside such a number.
  DType common_type(const ScalarValue& scalar, ops::Flavour flavour, std::span<const Index> tensors) const;
  /// The scalar as an operand beside tensors: weak in promotion, so it takes the dtype that they decide.
  ir::ValueId weak_operand(const ScalarValue& scalar, ops::Flavour flavour, std::span<const Index> tensors);

  /// The outcome of comparing numbers that the graph computes, where the program goes on with one outcome only.
  std::optional<bool> assumed_comparison(int operation, PyObject* a, PyObject* b);
  /// The same for a question of the module math.
  std::optional<bool> assumed_answer(std::string_view question, PyObject* number);

 private:
  ops::NodeBuilder& builder_;
  const NumberBounds& bounds_;
  Symbols& symbols_;
  StandIns& stand_ins_;
  const TorchState& state_;
  FloatSteps& floats_;
  Assumptions& assumptions_;
  RecordedTrace& trace_;
};

/// A float, or an int that float64 holds exactly.
std::optional<double> plain_float(PyObject* object);

}  // namespace tenon::python
