// The calls of a recording that took random numbers, and what they gave: a part of the program that is evaluated again takes the same ones.
#pragma once

#include <string>
#include <vector>

#include "core/ir/type.h"
#include "python/objects/graph_break.h"

namespace tenon::python {

class RecordedDraws {
 public:
  struct Draw {
    std::string function;
    bool torch = true;  // else NumPy
    std::vector<ir::Type> types;
    std::vector<ir::ValueId> results;
  };

  std::size_t size() const { return draws_.size(); }
  /// Whether all from that one on took torch's numbers.
  bool all_of_torch(std::size_t first) const;
  void note(Draw draw) { draws_.push_back(std::move(draw)); }

  /// From here on calls give what those from that one on gave, until `end_again`. Throws GraphBreak where that has begun.
  void begin_again(std::size_t first);
  bool is_again() const { return again_.has_value(); }
  /// What the next call gives. Throws GraphBreak where that is another one than it was.
  const std::vector<ir::ValueId>& next(const std::string& function, const std::vector<ir::Type>& types);
  void end_again() { again_.reset(); }

 private:
  std::vector<Draw> draws_;
  std::optional<std::size_t> again_;  // the next
};

}  // namespace tenon::python
