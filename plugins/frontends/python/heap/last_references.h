// Objects older than a segment that only the program's frames hold, and at whose end code runs.
#pragma once

#include <Python.h>

#include <algorithm>
#include <vector>

namespace tenon::python {

class Heap;

/// While a capture runs, the real frames still hold what they held when it began. This says when the program itself has let one of these go.
class LastReferences {
 public:
  /// Looks for such objects, and others that only the frames hold, among the slots of the frames, `values`, of which unbound ones are null. Nothing but the slots may hold these yet.
  void watch(PyObject* const* values, std::size_t count);
  /// Whether code runs at the end of none.
  bool empty() const { return !any_ends_in_code_; }
  /// Whether nobody but the frames held an object when the capture began.
  bool are_of(PyObject* object) const { return std::ranges::find(watched_, object, &Watched::object) != watched_.end(); }
  /// Whether the program has let go of one that only the frames held.
  bool any_gone(Heap& heap) const;
  /// One of them that the program has let go, borrowed, or null.
  PyObject* gone(Heap& heap);

 private:
  struct Watched {
    PyObject* object;
    Py_ssize_t of_frames;
    bool ends_in_code;  // else the program may give it what does
    std::size_t quiet_until_write = kNeverLookedAt;  // the number of writes so far when it was found to end without code
  };
  static constexpr std::size_t kNeverLookedAt = -1;
  static bool ends_in_code_now(Watched& watched, std::size_t writes);

  static bool is_gone(const Watched& watched, Heap& heap);

  std::vector<Watched> watched_;  // all that only the frames hold
  bool any_ends_in_code_ = false;
};

}  // namespace tenon::python
