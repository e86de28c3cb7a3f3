// Whether objects of the program still hold one, whatever has been written in this capture: what was taken from them is there for the rollback.
#include "python/heap/heap.h"

namespace tenon::python {

/// Whether the link of a path to what is found at `place` is as it was before the call.
bool Heap::is_unwritten(SourceId place) {
  const Source& source = sources()[place];
  PyObject* owner = known_at(source.parent);
  switch (source.kind) {
    case SourceKind::function_closure:
    case SourceKind::tuple_item:
    case SourceKind::instance_dict: return true;
    case SourceKind::dict_item: {
      const Change* change = owner ? changes_.find(owner) : nullptr;
      return owner != nullptr && !(change && change->wrote(source.key.get()));
    }
    case SourceKind::list_item: return owner != nullptr && !changes_.find(owner);
    case SourceKind::cell_contents: return owner != nullptr && !wrote_cell(owner);
    case SourceKind::member:
    case SourceKind::attribute: return owner != nullptr && !wrote_object(owner);
    default: return false;
  }
}

SourceId Heap::unwritten_root_of(PyObject* object) {
  SourceId at = source_of(object);
  for (; at && sources()[at].parent; at = sources()[at].parent)
    if (!is_unwritten(at)) return {};
  return at;
}

}  // namespace tenon::python
