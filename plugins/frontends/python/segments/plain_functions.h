// Functions that a program calls as plain Python although they could be captured: they break over and over, and do little in between.
#pragma once

#include <map>

#include "python/objects/ref.h"

namespace tenon::python {

/// Those of one compiled function. Lives as long as its cache. Needs the GIL.
class PlainFunctions {
 public:
  /// Takes note of a segment that has begun and ended in one frame of a function: what it does, the break after it included, in nanoseconds over
  /// plain execution. Gives whether the function has just turned out to be better called as it is.
  bool note_segment(PyObject* code, double gain) {
    Record& record = records_[code];
    if (!record.code) record.code = Ref::borrow(code);
    ++record.segments;
    record.gain += gain;
    if (record.is_plain || record.segments < kFewest || record.gain >= 0) return false;
    any_ = record.is_plain = true;
    return true;
  }
  bool contains(PyObject* code) const {
    if (!any_) return false;
    const auto found = records_.find(code);
    return found != records_.end() && found->second.is_plain;
  }
  void clear() {
    any_ = false;
    records_.clear();
  }

 private:
  static constexpr std::size_t kFewest = 2;  // segments that tell
  struct Record {
    Ref code;  // kept, so that the address stays its
    std::size_t segments = 0;
    double gain = 0;
    bool is_plain = false;
  };
  std::map<PyObject*, Record> records_;
  bool any_ = false;
};

}  // namespace tenon::python
