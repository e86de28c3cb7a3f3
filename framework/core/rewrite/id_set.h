// Sets of values or nodes of a graph.
#pragma once

#include <vector>

namespace tenon::rewrite {

/// By id.
template <class Id>
class IdSet {
 public:
  bool has(Id id) const { return id.value < bits_.size() && bits_[id.value]; }
  /// Whether it was not there.
  bool insert(Id id) {
    if (has(id)) return false;
    if (bits_.size() <= id.value) bits_.resize(id.value + 1, false);
    return bits_[id.value] = true;
  }

 private:
  std::vector<bool> bits_;
};

}  // namespace tenon::rewrite
