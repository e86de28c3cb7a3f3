// Floats that a call computes before its graph runs, from floats and ints that vary.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ir/dim.h"
#include "python/guards/source.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// float64 holds every int up to it.
inline constexpr std::int64_t kMostExactInFloats = std::int64_t{1} << 53;

/// Python's arithmetic of floats, step by step, in the order in which a capture met it. Where Python would raise, or give a complex number,
/// the tape does not hold: such a call needs another capture.
class FloatTape {
 public:
  using Position = std::uint32_t;
  enum class Op : std::uint8_t { read, integer, constant, add, subtract, multiply, divide, floor_divide, remainder, power, function, call, least, greatest };
  struct Step {
    Op op = Op::constant;
    Position left = 0, right = 0;          // earlier steps
    double number = 0;                     // constant
    SourceId source = {};                  // read: where the float is
    ir::Dim integer = {};                  // integer: over the symbols of the capture, at most 2**53
    double (*function)(double) = nullptr;  // finite where Python gives a float
    Ref callable = {};                     // call: of Python, of one or two floats; it gives a float or a bool, and does nothing else
    bool binary = false;                   // call: of two
    std::string words = {};                // for messages
  };
  enum class Comparison : std::uint8_t { less, less_equal, equal, not_equal, greater, greater_equal };

  /// For Py_LT to Py_GE.
  static Comparison comparison_of(int operation);

  bool empty() const { return steps_.empty(); }
  /// Takes over a step, and its value in the call that is captured. Nothing where it does not hold. A step that is there already is not taken twice.
  std::optional<Position> add(Step step, std::span<const std::int64_t> symbols, double read = 0);
  /// The outcome in the call that is captured, which is guarded.
  bool compare(Comparison comparison, Position left, Position right);

  /// Goes back to the start, for another call.
  void rewind() { computed_ = 0; }
  /// Computes the steps before `end` that are not computed yet. False where one does not hold. No exception may be set.
  bool advance(Position end, PyObject* const* registers, std::span<const std::int64_t> symbols) noexcept;
  /// Computes what is left. False where a step or an outcome is not as it was.
  bool evaluate(PyObject* const* registers, std::span<const std::int64_t> symbols) noexcept;
  double value(Position position) const { return values_[position]; }
  const std::vector<double>& values() const { return values_; }
  const std::string& words(Position position) const { return steps_[position].words; }
  /// A source that is read, or none.
  SourceId some_source() const;
  /// The outcomes in words: "0.5 < rate".
  std::vector<std::string> describe() const;
  /// After an evaluation that was false: the outcome that is another one, in words; empty where a step does not hold.
  std::string changed() const;

 private:
  struct Outcome {
    Comparison comparison;
    Position left, right;
    bool holds;
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };
  std::optional<double> compute(const Step& step, std::span<const std::int64_t> symbols) const;
  bool holds(const Outcome& outcome) const;
  std::string text(const Outcome& outcome) const;

  std::vector<Step> steps_;
  std::vector<double> values_;  // of the call that was computed last
  Position computed_ = 0;       // steps of this call
  std::vector<Outcome> outcomes_;
};

}  // namespace tenon::python
