// Functions that a program calls as plain Python although they could be captured: what they do between their breaks gains nothing.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "python/objects/ref.h"

namespace tenon::python {

/// Those of one compiled function. Lives as long as its cache. Needs the GIL.
class PlainFunctions {
 public:
  /// Takes note that a function has computed on arrays in a graph.
  void note_work(PyObject* code) { record_of(code).works = true; }
  /// Takes note of a segment that has begun and ended in one frame of a function: what it does, the break after it included, in nanoseconds over
  /// plain execution. Gives whether the function has just turned out to be better called as it is.
  bool note_segment(PyObject* code, double gain) {
    Record& record = record_of(code);
    ++record.segments;
    record.gain += gain;
    return record.segments >= kFewest && record.gain < 0 && leave(record);
  }
  /// The same of a function whose breaks cost others: what follows has one more variant, or breaks for a number that it has drawn. One that has never
  /// computed on arrays is better called as it is, and what it gives are numbers of what follows.
  bool note_cost(PyObject* code) {
    Record& record = record_of(code);
    return !record.works && leave(record);
  }
  /// Takes note that a graph would end for a number that a function has drawn, without anything on arrays in it: unless it has been tried before, the
  /// function is called as it is from now on, until `end_trial` says what it gives. Gives whether it is.
  bool begin_trial(PyObject* code) {
    Record& record = record_of(code);
    if (record.works || std::exchange(record.tried, true) || !leave(record)) return false;
    on_trial_.push_back(code);
    return true;
  }
  bool is_on_trial() const { return !on_trial_.empty(); }
  /// Whoever gives more than numbers has computed on arrays.
  void end_trial(bool gives_numbers) {
    for (PyObject* code : std::exchange(on_trial_, {})) {
      record_of(code).works = !gives_numbers;
      record_of(code).is_plain = gives_numbers;
    }
  }
  bool contains(PyObject* code) const {
    if (!any_) return false;
    const auto found = records_.find(code);
    return found != records_.end() && found->second.is_plain;
  }
  void clear() {
    any_ = false;
    on_trial_.clear();
    records_.clear();
  }

 private:
  static constexpr std::size_t kFewest = 2;  // segments that tell
  struct Record {
    Ref code;  // kept, so that the address stays its
    std::size_t segments = 0;
    double gain = 0;
    bool works = false;
    bool is_plain = false;
    bool tried = false;
  };
  Record& record_of(PyObject* code) {
    Record& record = records_[code];
    if (!record.code) record.code = Ref::borrow(code);
    return record;
  }
  bool leave(Record& record) {
    any_ = true;
    return !std::exchange(record.is_plain, true);
  }
  std::map<PyObject*, Record> records_;
  std::vector<PyObject*> on_trial_;  // code, kept by its record
  bool any_ = false;
};

}  // namespace tenon::python
