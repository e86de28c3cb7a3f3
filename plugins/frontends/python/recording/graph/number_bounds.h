// Between which ints the elements of a value are, whatever the data.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/ir/graph.h"

namespace tenon::python {

/// Decides comparisons of numbers that the graph computes where no data could decide them otherwise: a place that was drawn from 0 to what is left
/// of an image is not negative.
class NumberBounds {
 public:
  /// Both ends included; expressions over the sizes of the call.
  struct Bounds {
    ir::Dim least, most;
  };

  explicit NumberBounds(const ir::Graph& graph) : graph_(graph) {}

  /// Takes note of what is known of a value that the graph alone does not tell.
  void note(ir::ValueId value, Bounds bounds) { noted_.insert_or_assign(value, std::move(bounds)); }
  /// What is known of the elements of a value; nothing of most.
  std::optional<Bounds> of(ir::ValueId value) const { return of(value, kLongestChain); }
  /// What is known of what Python's ints give, which have no limit.
  static std::optional<Bounds> of_arithmetic(std::string_view op, const Bounds& a, const Bounds& b);
  /// Whether all are between `-most` and `most`.
  bool are_within(const Bounds& bounds, std::int64_t most) const;
  /// The outcome of a comparison, by Python's number for it; nothing where that depends on the data.
  std::optional<bool> compare(int operation, const Bounds& a, const Bounds& b) const;

 private:
  static constexpr int kLongestChain = 16;
  std::optional<Bounds> of(ir::ValueId value, int links) const;
  std::optional<bool> less(const Bounds& a, const Bounds& b) const;

  const ir::Graph& graph_;
  std::unordered_map<ir::ValueId, Bounds> noted_;
};

}  // namespace tenon::python
