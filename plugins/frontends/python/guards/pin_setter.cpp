#include "python/guards/pin_setter.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "python/compat/object_layout.h"
#include "python/compat/self_test.h"
#include "python/guards/object_checks.h"

namespace tenon::python {
namespace {

// Arguments that must be different are compared one by one up to here; the machine sorts more of them.
constexpr std::size_t kMostOthers = 8;

std::uint64_t word_at(const void* place) {
  std::uint64_t word;
  std::memcpy(&word, place, sizeof word);
  return word;
}

/// Where a function keeps a part of it that can be assigned; 0 for what is none.
std::size_t offset_in_function(SourceKind kind) {
  switch (kind) {
    case SourceKind::function_defaults: return offsetof(PyFunctionObject, func_defaults);
    case SourceKind::function_kwdefaults: return offsetof(PyFunctionObject, func_kwdefaults);
    case SourceKind::function_closure: return offsetof(PyFunctionObject, func_closure);
    default: return 0;
  }
}

const void* inside(PyObject* object, std::size_t offset) { return reinterpret_cast<const char*>(object) + offset; }

/// Where a container keeps its length; null for what keeps none.
const void* place_of_length(PyObject* object) {
  if (PyList_Check(object) || PyTuple_Check(object)) return inside(object, offsetof(PyVarObject, ob_size));
  if (PyDict_Check(object)) return inside(object, offsetof(PyDictObject, ma_used));
  if (PyAnySet_Check(object)) return inside(object, offsetof(PySetObject, used));
  return nullptr;
}

}  // namespace

PinSetter::PinSetter(PinnedCheck& check, const CheckMachine& machine, std::span<const CheckInstruction> code)
    : check_(check), machine_(machine), code_(code), holds_(machine.sources().size()), class_pinned_(holds_.size()), size_pinned_(holds_.size()) {
  for (std::uint32_t id = 1; id < holds_.size(); ++id)
    if (machine.source(id).kind == SourceKind::constant) holds_[id] = Hold::held;
}

void PinSetter::set() {
  check_.pins_ = {};
  check_.stages_.clear();
  check_.code_.clear();
  check_.late_.clear();
  check_.distinct_ = {};
  check_.kept_.clear();
  for (std::size_t at = 0; at < code_.size();) {
    const CheckInstruction& now = code_[at];
    if (now.op == CheckOp::dict_gate || now.op == CheckOp::type_gate) {
      at = set_gate(at);
      continue;
    }
    if (is_fetch(now.op)) set_fetch(now);
    else if (!pin_check(now)) keep_check(now);
    ++at;
  }
  const std::size_t code_end = check_.code_.size();
  check_.stages_.push_back({pins().words(), code_end, code_end});
}

void PinSetter::append(const CheckInstruction& instruction) {
  auto& stages = check_.stages_;
  const std::size_t end = check_.code_.size();
  if (stages.empty() || stages.back().words_end != pins().words()) stages.push_back({pins().words(), end, end});
  check_.code_.push_back(instruction);
  ++stages.back().code_end;
}

void PinSetter::pin_word(std::uint32_t source, const void* place) {
  pins().set_owner(source);
  pins().word(place, word_at(place));
}

bool PinSetter::place_at(std::uint32_t source, const void* place) {
  if (word_at(place) != reinterpret_cast<std::uintptr_t>(value(source))) return false;
  pin_word(source, place);
  holds_[source] = Hold::placed;
  return true;
}

void PinSetter::pin_class(std::uint32_t source) {
  PyObject* object = value(source);
  const bool fixed = holds_[source] == Hold::held && !PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) && !PyModule_Check(object);
  if (fixed || class_pinned_[source]) return;
  class_pinned_[source] = true;
  pin_word(source, &object->ob_type);
}

void PinSetter::demand_unmoved(std::uint32_t source) {
  // What Python's collector does not track has nothing below it.
  if (!steady(source) || !PyType_IS_GC(Py_TYPE(value(source)))) return;
  append({.op = CheckOp::check_unmoved, .source = source, .object = value(source)});
  holds_[source] = Hold::placed;
}

// ---- gates

/// Returns the index after the region behind the gate.
std::size_t PinSetter::set_gate(std::size_t at) {
  const CheckInstruction& gate = code_[at];
  const Stamp& stamp = machine_.stamp(gate.stamp);
  const bool known = holds_[gate.source] != Hold::loose && steady(gate.source) && stamp.object == value(gate.source);
  const bool dict = gate.op == CheckOp::dict_gate;
  if (known && (dict ? pin_dict(gate) : pin_type_version(gate.source, static_cast<std::uint32_t>(stamp.version)))) {
    for (std::size_t inner = at; inner < gate.jump; ++inner)
      if (is_fetch(code_[inner].op)) holds_[code_[inner].source] = Hold::held;
    return gate.jump;
  }
  keep_region(at);
  return gate.jump;
}

/// The dict's version is that of the stamp: everything behind the gate holds as long as it stays.
bool PinSetter::pin_dict(const CheckInstruction& gate) {
  PyObject* dict = value(gate.source);
  const void* place = compat::dict_version_place(dict);
  if (!place || compat::dict_version(dict) != machine_.stamp(gate.stamp).version) return false;
  pin_class(gate.source);
  pin_word(gate.source, place);
  return true;
}

bool PinSetter::pin_type_version(std::uint32_t source, std::uint32_t version) {
  static_assert(offsetof(PyTypeObject, tp_version_tag) % sizeof(std::uint64_t) == 0 && offsetof(PyTypeObject, tp_finalize) == offsetof(PyTypeObject, tp_version_tag) + sizeof(std::uint64_t));
  auto* type = reinterpret_cast<PyTypeObject*>(value(source));
  if (version == 0 || compat::type_version(type) != version) return false;
  pin_word(source, &type->tp_flags);  // whether the version is valid
  pin_word(source, &type->tp_version_tag);
  return true;
}

/// Takes the gate and what is behind it over as they are.
void PinSetter::keep_region(std::size_t at) {
  const std::size_t end = code_[at].jump;
  CheckInstruction gate = code_[at];
  append(gate);
  const std::size_t here = check_.code_.size() - 1;
  check_.code_[here].jump = static_cast<std::uint32_t>(here - check_.stages_.back().code_begin + (end - at));
  for (std::size_t inner = at + 1; inner < end; ++inner) append(code_[inner]);
  for (std::size_t inner = at + 1; inner < end; ++inner)
    if (is_fetch(code_[inner].op)) demand_unmoved(code_[inner].source);
}

// ---- fetches

void PinSetter::set_fetch(const CheckInstruction& fetch) {
  if (pin_fetch(fetch)) return;
  append(fetch);
  if (fetch.op != CheckOp::fetch_argument) return;
  const auto is_tensor_check = [&](const Guard& guard) { return guard.source.value == fetch.source && guard.kind == GuardKind::value_check; };
  if (std::ranges::none_of(machine_.guards(), is_tensor_check)) demand_unmoved(fetch.source);
}

bool PinSetter::pin_fetch(const CheckInstruction& fetch) {
  const Source& source = machine_.source(fetch.source);
  const std::uint32_t parent = source.parent.value;
  if (!source.parent || holds_[parent] == Hold::loose || !steady(fetch.source)) return false;
  switch (source.kind) {
    case SourceKind::instance_dict: return pin_instance_dict(parent, fetch.source);
    case SourceKind::list_item:
    case SourceKind::tuple_item: return pin_sequence_item(parent, fetch.source, source.index);
    case SourceKind::function_defaults:
    case SourceKind::function_kwdefaults:
    case SourceKind::function_closure: return pin_function_part(parent, fetch.source, offset_in_function(source.kind));
    case SourceKind::cell_contents:
      pin_class(parent);
      return place_at(fetch.source, &reinterpret_cast<PyCellObject*>(value(parent))->ob_ref);
    case SourceKind::method_function:
    case SourceKind::method_self: return pin_bound_part(parent, fetch.source);
    case SourceKind::type_attribute: return pin_type_attribute(parent, fetch.source);
    default: return false;
  }
}

bool PinSetter::pin_instance_dict(std::uint32_t parent, std::uint32_t source) {
  PyObject** place = compat::instance_dict_place(value(parent));
  if (!place) return false;
  pin_class(parent);  // the place depends on it
  return place_at(source, place);
}

bool PinSetter::pin_sequence_item(std::uint32_t parent, std::uint32_t source, std::int64_t index) {
  PyObject* sequence = value(parent);
  if (holds_[parent] == Hold::held && PyTuple_Check(sequence)) {
    holds_[source] = Hold::held;
    return true;
  }
  if (!pin_length(parent)) return false;
  if (index < 0) index += PySequence_Fast_GET_SIZE(sequence);
  if (index < 0 || index >= PySequence_Fast_GET_SIZE(sequence)) return false;
  if (PyList_Check(sequence)) pin_word(source, &reinterpret_cast<PyListObject*>(sequence)->ob_item);
  return place_at(source, PySequence_Fast_ITEMS(sequence) + index);
}

bool PinSetter::pin_function_part(std::uint32_t parent, std::uint32_t source, std::size_t offset) {
  pin_class(parent);
  return place_at(source, inside(value(parent), offset));
}

/// The function or object of a bound method, which never changes.
bool PinSetter::pin_bound_part(std::uint32_t parent, std::uint32_t source) {
  if (holds_[parent] == Hold::held) {
    holds_[source] = Hold::held;
    return true;
  }
  PyObject* method = value(parent);
  const bool function = machine_.source(source).kind == SourceKind::method_function;
  pin_class(parent);
  if (!PyMethod_Check(method)) return place_at(source, inside(method, offsetof(PyCFunctionObject, m_self)));
  return place_at(source, inside(method, function ? offsetof(PyMethodObject, im_func) : offsetof(PyMethodObject, im_self)));
}

bool PinSetter::pin_type_attribute(std::uint32_t parent, std::uint32_t source) {
  auto* type = reinterpret_cast<PyTypeObject*>(value(parent));
  if (!compat::versions_work() || !steady(parent) || compat::type_lookup(type, machine_.source(source).key.get()) != value(source)) return false;
  if (!pin_type_version(parent, compat::type_version(type))) return false;
  holds_[source] = Hold::held;
  return true;
}

// ---- checks

bool PinSetter::pin_check(const CheckInstruction& check) {
  const Guard& guard = machine_.guards()[check.guard];
  if (guard.kind == GuardKind::distinct) return pin_distinct(guard);
  return holds_[check.source] != Hold::loose && steady(check.source) && pin_guard(guard, check.source);
}

/// A check of an object that someone else supplies may rest on its metadata, which another one has pinned as a block.
void PinSetter::keep_check(const CheckInstruction& check) {
  const bool may_rest_on_block = machine_.guards()[check.guard].kind == GuardKind::value_check && holds_[check.source] != Hold::loose;
  if (may_rest_on_block) check_.late_.push_back(check);
  else append(check);
}

bool PinSetter::pin_guard(const Guard& guard, std::uint32_t source) {
  switch (guard.kind) {
    case GuardKind::type_is: pin_class(source); return guard.expected.is(reinterpret_cast<PyObject*>(Py_TYPE(value(source))));
    case GuardKind::identity: return true;  // the guard holds the object: nothing else can have its address
    case GuardKind::constant:
      if (holds_[source] == Hold::placed) check_.kept_.push_back(Ref::borrow(value(source)));
      return true;
    case GuardKind::length: return checks::length_of(value(source)) == guard.number && pin_length(source);
    case GuardKind::same_object:
    case GuardKind::different_object: return holds_[guard.other.value] != Hold::loose;
    case GuardKind::function_parts: return checks::same_function_parts(value(source), guard.expected.get()) && pin_function_parts(source);
    case GuardKind::cell_empty:
      pin_class(source);
      pin_word(source, &reinterpret_cast<PyCellObject*>(value(source))->ob_ref);
      return PyCell_GET(value(source)) == nullptr;
    case GuardKind::slot_empty: {
      PyObject** place = compat::place_of_slot(value(source), guard.expected.get());
      pin_class(source);
      pin_word(source, place);
      return *place == nullptr;
    }
    case GuardKind::value_check: return pin_value_check(guard, source);
    default: return false;
  }
}

bool PinSetter::pin_length(std::uint32_t source) {
  PyObject* container = value(source);
  const void* place = place_of_length(container);
  if (!place) return false;
  if (size_pinned_[source] || (PyTuple_Check(container) && holds_[source] == Hold::held)) return true;
  pin_class(source);
  pin_word(source, place);
  size_pinned_[source] = true;
  return true;
}

bool PinSetter::pin_function_parts(std::uint32_t source) {
  pin_class(source);
  for (std::size_t part : {offsetof(PyFunctionObject, func_code), offsetof(PyFunctionObject, func_defaults), offsetof(PyFunctionObject, func_kwdefaults), offsetof(PyFunctionObject, func_globals)})
    pin_word(source, inside(value(source), part));
  return true;
}

bool PinSetter::pin_value_check(const Guard& guard, std::uint32_t source) {
  const Pins::Mark before = pins().mark();
  pins().set_owner(source);
  if (guard.check->pin(value(source), pins())) return true;
  pins().drop_since(before);
  return false;
}

/// What is pinned stays different from each other: only the others are looked at.
bool PinSetter::pin_distinct(const Guard& guard) {
  PinnedCheck::Distinct distinct;
  for (SourceId id : guard.others) {
    if (holds_[id.value] == Hold::loose) distinct.others.push_back(id.value);
    else distinct.pinned.push_back(value(id.value));
  }
  if (distinct.others.size() > kMostOthers) return false;
  distinct.seen.resize(distinct.others.size());
  std::sort(distinct.pinned.begin(), distinct.pinned.end());
  check_.distinct_ = std::move(distinct);
  return true;
}

}  // namespace tenon::python
