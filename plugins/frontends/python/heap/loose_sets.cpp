// Sets of one item in which a number varies: what it hashes to decides nothing as long as nothing else is looked up in them.
#include "python/heap/heap.h"

namespace tenon::python {

void Heap::add_loosely(PyObject* set, PyObject* item) {
  const bool before = recorder_.hash_unguarded(true);
  const int failed = PySet_Add(set, item);
  recorder_.hash_unguarded(before);
  checked(failed);
  loose_.insert_or_assign(set, std::pair(Ref::borrow(set), Ref::borrow(item)));
}

PyObject* Heap::loose_item(PyObject* set) {
  if (loose_.empty()) return nullptr;
  const auto found = loose_.find(set);
  if (found == loose_.end()) return nullptr;
  if (PySet_GET_SIZE(set) == 1) return found->second.second.get();
  loose_.erase(found);
  return nullptr;
}

void Heap::tighten(PyObject* set) {
  PyObject* item = loose_item(set);
  if (item == nullptr) return;
  const Ref held = Ref::borrow(item);
  loose_.erase(set);
  if (PyObject_Hash(held.get()) == -1) throw_python_error();
}

}  // namespace tenon::python
