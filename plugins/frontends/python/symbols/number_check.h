// The guards on the numbers of a segment: reads them at each call, and checks the relations that the capture relied on.
#pragma once

#include <string>
#include <vector>

#include "core/ir/relation.h"
#include "python/guards/guard_set.h"
#include "python/symbols/float_tape.h"

namespace tenon::python {

/// Where a call's value of one symbol is found.
struct NumberSource {
  enum class Kind : std::uint8_t {
    data,  // nowhere: it depends on data, and the graph finds it
    extent,
    stride,
    integer,
    length,       // len() of a list, dict, set or deque
    whole_float,  // the float that a step of the tape gives, which is a whole number
    expression,   // nowhere: what an expression over earlier symbols comes to
  };
  Kind kind = Kind::data;
  SourceId source;          // the tensor or array, the int, or the container
  std::uint32_t dimension = 0;
  std::string name;         // "x.shape[0]"
  FloatTape::Position step = 0;
  ir::Dim value = {};       // expression
};

/// Stands for a size that depends on data until a run has found it: unlike any other size that is likely.
constexpr std::int64_t made_up_size(std::size_t symbol) { return 1009 + 97 * static_cast<std::int64_t>(symbol); }

/// Symbols are known by their SymbolId in the graph, which is their position among the sources.
class NumberCheck final : public NumbersGuard {
 public:
  NumberCheck(std::vector<NumberSource> sources, std::vector<ir::Relation> relations, std::vector<ir::Dim> computed, FloatTape floats)
      : sources_(std::move(sources)), relations_(std::move(relations)), computed_(std::move(computed)), floats_(std::move(floats)), values_(sources_.size()) {
    for (std::size_t s = 0; s < values_.size(); ++s)
      if (sources_[s].kind == NumberSource::Kind::data) values_[s] = made_up_size(s);
  }

  bool holds(PyObject* const* registers) noexcept override;
  std::optional<GuardFailure> failure(PyObject* const* registers) override;
  std::vector<std::string> describe() const override;
  SourceId some_source() const override;

  /// The values of the call that was checked last; of sizes that depend on data, made-up ones.
  const std::int64_t* values() const { return values_.data(); }
  const FloatTape& floats() const { return floats_; }
  const std::vector<NumberSource>& sources() const { return sources_; }

 private:
  bool read(PyObject* const* registers) noexcept;
  bool relation_holds(const ir::Relation& relation) const noexcept;
  std::string text(const ir::Dim& dim) const;
  std::string text(const ir::Relation& relation) const;

  std::vector<NumberSource> sources_;
  std::vector<ir::Relation> relations_;
  std::vector<ir::Dim> computed_;  // must be computable in 64 bits
  FloatTape floats_;
  std::vector<std::int64_t> values_;
  std::vector<std::int64_t> first_;  // of the call that was captured, for messages
};

}  // namespace tenon::python
