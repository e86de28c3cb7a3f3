#include "python/heap/journal.h"

#include <map>
#include <string>

#include "python/heap/snapshot.h"
#include "python/objects/dict_access.h"
#include "python/objects/graph_break.h"

namespace tenon::python {

void set_attribute_past_override(PyObject* owner, PyObject* name, PyObject* value) {
  const bool instance = PyType_HasFeature(Py_TYPE(owner), Py_TPFLAGS_HEAPTYPE) && !PyType_Check(owner);
  const setattrofunc store = instance ? PyObject_GenericSetAttr : PyType_Check(owner) ? PyType_Type.tp_setattro : Py_TYPE(owner)->tp_setattro;
  checked(store(owner, name, value));
}

void Replay::run(const std::vector<Ref>& built) const {
  std::vector<PyObject*> arguments;
  for (const Write<std::uint32_t>& write : writes_) {
    const auto operand = [&](std::size_t at) { return built[write.operands[at]].get(); };
    switch (write.kind) {
      case WriteKind::dict_set: set_past_override(operand(0), operand(1), operand(2)); break;
      case WriteKind::dict_delete: set_past_override(operand(0), operand(1), nullptr); break;
      case WriteKind::attribute_set: set_attribute_past_override(operand(0), write.detail.get(), operand(1)); break;
      case WriteKind::attribute_delete: set_attribute_past_override(operand(0), write.detail.get(), nullptr); break;
      case WriteKind::cell_set: checked(PyCell_Set(operand(0), operand(1))); break;
      case WriteKind::cell_clear: checked(PyCell_Set(operand(0), nullptr)); break;
      case WriteKind::call:
        arguments.clear();
        for (std::size_t at = 0; at < write.operands.size(); ++at) arguments.push_back(operand(at));
        checked(PyObject_Vectorcall(write.detail.get(), arguments.data(), arguments.size(), nullptr));
        break;
      case WriteKind::advance:
        for (long times = PyLong_AsLong(write.detail.get()); times > 0; --times) {
          Ref item = Ref::steal(PyIter_Next(operand(0)));
          if (!item && PyErr_Occurred()) throw_python_error();
        }
        break;
    }
  }
}

int Replay::traverse(visitproc visit, void* arg) const {
  for (const Write<std::uint32_t>& write : writes_) Py_VISIT(write.detail.get());
  return 0;
}

void Journal::add(WriteKind kind, std::vector<Ref> operands, Ref detail) {
  for (const Ref& operand : operands) ++references_[operand.get()];
  writes_.push_back({kind, std::move(detail), std::move(operands)});
}

void Journal::add_advance(PyObject* iterator) {
  long times = 1;
  if (!writes_.empty() && writes_.back().kind == WriteKind::advance && writes_.back().operands[0].is(iterator)) {
    times += PyLong_AsLong(writes_.back().detail.get());
    writes_.pop_back();
    --references_[iterator];
  }
  add(WriteKind::advance, {Ref::borrow(iterator)}, checked(PyLong_FromLong(times)));
}

Py_ssize_t Journal::references_to(PyObject* object) const {
  const auto found = references_.find(object);
  return found == references_.end() ? 0 : found->second;
}

std::vector<Write<Ref>> Journal::last_values() const {
  std::vector<Write<Ref>> writes;
  std::map<std::pair<PyObject*, std::string>, std::size_t> sets;  // of a dict at a text, since code may have run last
  for (const Write<Ref>& write : writes_) {
    const char* text = write.kind == WriteKind::dict_set && PyUnicode_CheckExact(write.operands[1].get()) ? PyUnicode_AsUTF8(write.operands[1].get()) : nullptr;
    if (!text) {
      PyErr_Clear();
      sets.clear();
      writes.push_back(write);
      continue;
    }
    const auto [known, first] = sets.try_emplace({write.operands[0].get(), text}, writes.size());
    if (first) writes.push_back(write);
    else writes[known->second].operands[2] = write.operands[2];
  }
  return writes;
}

Replay Journal::write(Snapshot& snapshot) const {
  Replay replay;
  for (const Write<Ref>& write : last_values()) {
    Write<std::uint32_t> numbered{write.kind, write.detail, {}};
    for (const Ref& operand : write.operands) numbered.operands.push_back(snapshot.add(operand.get()));
    replay.add(std::move(numbered));
  }
  return replay;
}

}  // namespace tenon::python
