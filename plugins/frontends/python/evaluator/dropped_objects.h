// What the program lets go of, where code may run when it goes.
#pragma once

#include "python/heap/heap.h"
#include "python/heap/last_references.h"
#include "python/segments/frame.h"

namespace tenon::python {

/// Asks no other part.
class DroppedObjects {
 public:
  DroppedObjects(const std::vector<std::unique_ptr<Frame>>& frames, Heap& heap) : frames_(frames), heap_(heap) {}

  /// Breaks where the program has let go what only its frames held, which goes for real when the segment ends, after all its other effects.
  void require_all_alive();
  /// An older object whose last reference may go here must go for real, in its turn among the other effects of the program.
  void require_no_finalizer(const Slot& dropped);
  void require_no_effect_of_drop(const Slot& dropped) {
    require_no_finalizer(dropped);
    require_not_watched(dropped);
  }
  /// Arguments of a continuation, whose frames hold them.
  void watch(PyObject* const* values, std::size_t count) { last_references_.watch(values, count); }
  /// Whether the program has let go of an older object that only its frames held: what that one held may be gone too.
  bool any_gone() const { return last_references_.any_gone(heap_); }
  bool watches() const { return !last_references_.empty(); }

 private:
  /// Breaks when the program lets go of an object whose class has something to do then.
  bool frames_hold_finalizers(PyObject* exception) const;
  /// Breaks when a frame lets go of an older object that weak references look to: the last reference may be the frame's.
  void require_not_watched(const Slot& dropped);

  const std::vector<std::unique_ptr<Frame>>& frames_;
  Heap& heap_;
  LastReferences last_references_;
};

}  // namespace tenon::python
