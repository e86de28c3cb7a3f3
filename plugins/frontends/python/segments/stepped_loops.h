// Loops that are not written out: what they go over varies so much that each capture of all their rounds is one more variant. Captures end
// where such a loop takes its next item, so that one round is a segment, and the rounds share its variants.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "python/objects/graph_break.h"

namespace tenon::python {

/// Ends the capture before a loop takes an item, or before what it goes over is made.
class SteppedLoop : public GraphBreak {
 public:
  /// `leaves`: rounds have turned out to be better left to plain Python, and with them what follows in the frame.
  explicit SteppedLoop(bool leaves)
      : GraphBreak(leaves ? "a loop breaks in each round, and does little in one" : "a loop goes over other items in call after call",
                   leaves ? "it runs as plain Python; an operation on whole tensors would be compiled" : "each round is compiled by itself, once for all calls"),
        leaves_(leaves) {}
  bool leaves() const { return leaves_; }

 private:
  bool leaves_;
};

/// The loops of one function and of what it calls. Lives as long as the function's cache.
class SteppedLoops {
 public:
  bool contains(PyObject* code, std::int32_t for_iter) const { return loops_.contains({code, for_iter}); }
  bool is_left(PyObject* code, std::int32_t for_iter) const {
    const auto found = loops_.find({code, for_iter});
    return found != loops_.end() && found->second;
  }
  void add(PyObject* code, std::int32_t for_iter, bool leaves = false) {
    const auto [loop, fresh] = loops_.try_emplace({code, for_iter}, leaves);
    loop->second |= leaves;
    if (fresh) codes_.push_back(Ref::borrow(code));
  }
  bool empty() const { return loops_.empty(); }
  void clear() {
    loops_.clear();
    codes_.clear();
  }

 private:
  std::map<std::pair<PyObject*, std::int32_t>, bool> loops_;  // with whether they are left to plain Python
  std::vector<Ref> codes_;  // kept, so that the addresses stay theirs
};

}  // namespace tenon::python
