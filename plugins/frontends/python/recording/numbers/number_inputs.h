// Ints, floats, texts and lengths that were there before the call and may vary, as the program sees them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "python/guards/recorder.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"
#include "python/recording/numbers/float_steps.h"
#include "python/recording/numbers/recorded_texts.h"

namespace tenon::python {

/// As Recorder says.
class NumberInputs {
 public:
  NumberInputs(RecordedGraph& graph, RecordedInputs& inputs, FloatSteps& floats, RecordedTexts& texts)
      : core_(graph), inputs_(inputs), floats_(floats), texts_(texts) {}

  Ref number(PyObject* object, SourceId source, GuardSet& guards);
  Ref length_at(SourceId source, std::int64_t length, GuardSet& guards);
  bool length_wears_out(SourceId source, std::int64_t length, GuardSet& guards);
  bool items_keep_varying(SourceId source, GuardSet& guards);
  bool rounds_keep_varying(std::span<const Ref> bounds);
  void counts(SourceId source, PyObject* count, PyObject* next, GuardSet& guards);
  std::optional<Recorder::VaryingPlace> place_of(PyObject* number);
  bool may_be_chosen(PyObject* object);
  std::optional<bool> equal_ints(std::span<PyObject* const> left, std::span<PyObject* const> right);
  Ref plain_number(PyObject* number);

 private:
  std::string name_of_length(SourceId source, GuardSet& guards);

  RecordedGraph& core_;
  RecordedInputs& inputs_;
  FloatSteps& floats_;
  RecordedTexts& texts_;
};

}  // namespace tenon::python
