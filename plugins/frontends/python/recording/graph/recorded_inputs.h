// The inputs of a graph while it is recorded: real objects that were there before the call, and numbers that are computed before the graph runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "python/graph/captured_graph.h"
#include "python/guards/guard_set.h"
#include "python/metadata/memory_overlap.h"
#include "python/recording/graph/recorded_graph.h"

namespace tenon::python {

class RecordedInputs {
 public:
  using Index = StandIns::Index;

  /// `freeze`: parameters and buffers that the program does not write are the same at each call, under guards.
  RecordedInputs(RecordedGraph& graph, bool freeze) : graph_(graph.graph), symbols_(graph.symbols), stand_ins_(graph.stand_ins), places_(graph.places), freeze_(freeze) {}

  /// An object that was there before the call: gives its stand-in, and adds the guards on it.
  Ref add(PyObject* real, SourceId source, GuardSet& guards);
  /// A float that a step of the tape gives: the value of the graph.
  ir::ValueId add_float(FloatTape::Position step);

  /// The words of a source, by which its numbers are known. Variables of two frames may have the same.
  std::string words_of(SourceId source, GuardSet& guards);

  bool freezes() const { return freeze_; }
  const std::vector<Index>& stand_ins() const { return inputs_; }
  PyObject* object(std::uint32_t input) const { return objects_[input].get(); }
  const TensorSpec& spec(std::uint32_t input) const { return specs_[input]; }

  /// Breaks where a written input shares memory with another one: their stand-ins do not.
  void note_write(Index index);

  /// Ends it: hands over what the graph's inputs are; those with an update are thawed.
  void give(CapturedGraph& captured);

 private:
  ir::ValueId add_to_graph(ir::Type type, std::string_view name);
  ElementPlaces places_of(std::uint32_t input) const;
  void note_place(std::uint32_t input);
  std::vector<std::uint32_t> near(std::uint32_t input) const;
  void require_apart(std::uint32_t written, std::uint32_t other) const;

  ir::Graph& graph_;
  Symbols& symbols_;
  StandIns& stand_ins_;
  TensorPlaces& places_;
  const bool freeze_;
  std::vector<Index> inputs_;
  std::vector<TensorSpec> specs_;
  std::vector<std::shared_ptr<FrozenTensor>> frozen_;           // null for the others
  std::vector<Ref> objects_;
  std::vector<std::optional<FloatTape::Position>> steps_;       // of floats
  std::multimap<std::uintptr_t, std::uint32_t> by_place_;       // tensors by their lowest byte
  std::uintptr_t longest_ = 0;                                  // the most bytes from a tensor's lowest on to its highest
  std::unordered_map<std::string, std::vector<SourceId>> named_;  // sources by their words
};

}  // namespace tenon::python
