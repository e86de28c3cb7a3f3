#include "python/guards/check_machine.h"

#include <algorithm>

#include "python/compat/object_layout.h"
#include "python/compat/result_cache.h"
#include "python/compat/self_test.h"
#include "python/guards/object_checks.h"
#include "python/guards/special_methods.h"
#include "python/objects/dict_access.h"
#include "python/objects/iterators.h"

namespace tenon::python {
namespace {

bool makes_object(const Source& source) {
  return source.kind == SourceKind::member || source.kind == SourceKind::attribute || source.kind == SourceKind::called || source.kind == SourceKind::upcoming;
}

bool check_makes_object(const Guard& guard) {
  return guard.kind == GuardKind::dict_keys || guard.kind == GuardKind::set_items || guard.kind == GuardKind::more_items || guard.kind == GuardKind::no_more_items;
}

/// Whether comparing with a key may run Python code.
bool runs_python(PyObject* key) {
  if (PyTuple_CheckExact(key) || PyFrozenSet_CheckExact(key) || PyList_CheckExact(key)) {
    const Ref items = Ref::steal(PySequence_Tuple(key));
    if (!items) PyErr_Clear();
    for (Py_ssize_t i = 0; items && i < PyTuple_GET_SIZE(items.get()); ++i)
      if (runs_python(PyTuple_GET_ITEM(items.get(), i))) return true;
    return !items;
  }
  return PyType_HasFeature(Py_TYPE(key), Py_TPFLAGS_HEAPTYPE) && Py_TYPE(key)->tp_richcompare != PyBaseObject_Type.tp_richcompare;
}

/// What the cache holds under the key is nothing, or the constant that is expected where one is.
bool keeps_as_expected(PyObject* cache, PyObject* expected) noexcept {
  PyObject* held = compat::result_in_cache(cache, PyTuple_GET_ITEM(expected, 0));
  return held == nullptr || (PyTuple_GET_SIZE(expected) == 2 && same_constant(held, PyTuple_GET_ITEM(expected, 1)));
}

bool compares_in_python(const Guard& guard) {
  switch (guard.kind) {
    case GuardKind::dict_keys:
    case GuardKind::set_items:
    case GuardKind::key_missing:
    case GuardKind::key_present: return runs_python(guard.expected.get());
    default: return false;
  }
}

}  // namespace

CheckMachine::CheckMachine(SourceTable sources, std::vector<Guard> guards, std::size_t stamps)
    : sources_(std::move(sources)), guards_(std::move(guards)), stamps_(stamps), registers_(sources_.size(), nullptr), trust_versions_(compat::versions_work()) {
  sources_.close();
  for (std::uint32_t id = 1; id < sources_.size(); ++id)
    if (source(id).kind == SourceKind::constant) registers_[id] = source(id).key.get();
    else makes_objects_ |= makes_object(source(id)), holds_values_ |= source(id).kind == SourceKind::dict_item && runs_python(source(id).key.get());
  makes_objects_ |= std::ranges::any_of(guards_, check_makes_object);
  holds_values_ |= std::ranges::any_of(guards_, compares_in_python);
}

int CheckMachine::traverse(visitproc visit, void* arg) const {
  for (const Guard& guard : guards_) {
    Py_VISIT(guard.expected.get());
    Py_VISIT(guard.key.get());
  }
  for (const Ref& temporary : temporaries_) Py_VISIT(temporary.get());
  return sources_.traverse(visit, arg);
}

// ---- fetches

PyObject* CheckMachine::keep(PyObject* fresh) noexcept {
  if (fresh == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  temporaries_.push_back(Ref::steal(fresh));
  return fresh;
}

/// What the numbers at a place say; nothing where they, or it, take more than 64 bits.
std::optional<std::int64_t> CheckMachine::index_at(const ChosenPlace& place) const noexcept {
  constexpr std::size_t kMostNumbers = 8;
  std::int64_t numbers[kMostNumbers];
  if (place.numbers.size() > kMostNumbers) return std::nullopt;
  for (std::size_t at = 0; at < place.numbers.size(); ++at) {
    PyObject* number = registers_[place.numbers[at].value];
    int overflow = 0;
    numbers[at] = PyLong_Check(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : checks::length_of(number);
    if (overflow != 0) return std::nullopt;
  }
  try {
    return place.index.evaluate({numbers, place.numbers.size()});
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

PyObject* CheckMachine::item_of_number(PyObject* dict, const ChosenPlace& place) const noexcept {
  const std::optional<std::int64_t> number = index_at(place);
  const Ref key = number ? Ref::steal(PyLong_FromLongLong(*number)) : Ref();
  if (number && !key) PyErr_Clear();
  return key ? checks::dict_get(dict, key.get()) : nullptr;
}

PyObject* CheckMachine::chosen_item(PyObject* parent, const ChosenPlace& place) const noexcept {
  if (PyDict_Check(parent)) return item_of_number(parent, place);
  if (!(PyList_Check(parent) || PyTuple_Check(parent))) return nullptr;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(parent);
  std::int64_t index = index_at(place).value_or(size);
  if (index < 0) index += size;
  return index >= 0 && index < size ? PySequence_Fast_GET_ITEM(parent, index) : nullptr;
}

bool CheckMachine::has_number(PyObject* dict, const ChosenPlace& place, bool present) const noexcept {
  return PyDict_Check(dict) && index_at(place) && (item_of_number(dict, place) != nullptr) == present;
}

PyObject* CheckMachine::fetch(const Source& wanted, const CallArguments& call) noexcept {
  if (wanted.kind == SourceKind::argument) return call.values[wanted.index];
  PyObject* parent = registers_[wanted.parent.value];
  switch (wanted.kind) {
    case SourceKind::constant: return wanted.key.get();
    case SourceKind::instance_dict: return compat::instance_dict(parent);
    case SourceKind::dict_item: return PyDict_Check(parent) ? checks::dict_get(parent, wanted.key.get()) : nullptr;
    case SourceKind::dict_value: return PyDict_Check(parent) ? checks::dict_value(parent, wanted.index) : nullptr;
    case SourceKind::list_item: return PyList_Check(parent) ? checks::list_item(parent, wanted.index) : nullptr;
    case SourceKind::tuple_item:
      return PyTuple_Check(parent) && wanted.index < PyTuple_GET_SIZE(parent) ? PyTuple_GET_ITEM(parent, wanted.index) : nullptr;
    case SourceKind::chosen_item: return chosen_item(parent, *wanted.place);
    case SourceKind::sequence_item: return keep(checks::sequence_item(parent, wanted.index));
    case SourceKind::member: {
      PyObject* descriptor = wanted.key.get();
      return keep(Py_TYPE(descriptor)->tp_descr_get(descriptor, parent, reinterpret_cast<PyObject*>(Py_TYPE(parent))));
    }
    case SourceKind::attribute: return keep(PyObject_GetAttr(parent, wanted.key.get()));
    case SourceKind::type_attribute:
      return PyType_Check(parent) ? compat::type_lookup(reinterpret_cast<PyTypeObject*>(parent), wanted.key.get()) : nullptr;
    case SourceKind::function_defaults: return PyFunction_Check(parent) ? PyFunction_GET_DEFAULTS(parent) : nullptr;
    case SourceKind::function_kwdefaults: return PyFunction_Check(parent) ? PyFunction_GET_KW_DEFAULTS(parent) : nullptr;
    case SourceKind::function_closure: return PyFunction_Check(parent) ? PyFunction_GET_CLOSURE(parent) : nullptr;
    case SourceKind::cell_contents: return PyCell_Check(parent) ? PyCell_GET(parent) : nullptr;
    case SourceKind::method_function: return PyMethod_Check(parent) ? PyMethod_GET_FUNCTION(parent) : nullptr;
    case SourceKind::method_self:
      if (PyMethod_Check(parent)) return PyMethod_GET_SELF(parent);
      return PyCFunction_Check(parent) ? PyCFunction_GET_SELF(parent) : nullptr;
    case SourceKind::called:
      return PyWeakref_Check(parent) ? PyWeakref_GET_OBJECT(parent) : keep(PyObject_CallNoArgs(parent));
    case SourceKind::cached_result: return compat::result_in_cache(parent, wanted.key.get());
    case SourceKind::class_dict: return PyType_Check(parent) ? compat::type_dict(reinterpret_cast<PyTypeObject*>(parent)) : nullptr;
    case SourceKind::proxied: return Py_TYPE(parent) == &PyDictProxy_Type ? compat::mapping_of_proxy(parent) : nullptr;
    case SourceKind::upcoming: return keep(upcoming_item(parent, wanted.index).release());
    case SourceKind::handled_exception: {
      PyObject* handled = PyErr_GetHandledException();
      return keep(handled ? handled : Py_NewRef(Py_None));
    }
    case SourceKind::argument: break;
  }
  return nullptr;
}

// ---- checks

bool CheckMachine::distinct_holds(const Guard& guard) noexcept {
  // Mostly the objects of the last call are there again, and were distinct then.
  bool as_before = seen_distinct_.size() == guard.others.size();
  for (std::size_t at = 0; as_before && at < seen_distinct_.size(); ++at) as_before = seen_distinct_[at] == registers_[guard.others[at].value];
  if (as_before) return true;
  seen_distinct_.clear();
  distinct_.clear();
  for (SourceId id : guard.others) distinct_.push_back(registers_[id.value]);
  std::sort(distinct_.begin(), distinct_.end());
  if (std::adjacent_find(distinct_.begin(), distinct_.end()) != distinct_.end()) return false;
  for (SourceId id : guard.others) seen_distinct_.push_back(registers_[id.value]);
  return true;
}

bool CheckMachine::holds(const Guard& guard) noexcept {
  PyObject* value = registers_[guard.source.value];
  PyObject* expected = guard.expected.get();
  switch (guard.kind) {
    case GuardKind::type_is: return Py_TYPE(value) == reinterpret_cast<PyTypeObject*>(expected);
    case GuardKind::identity: return value == expected;
    case GuardKind::constant: return same_constant(value, expected);
    case GuardKind::length: return checks::length_of(value) == guard.number;
    case GuardKind::dict_keys: return PyDict_Check(value) && checks::same_keys(value, expected);
    case GuardKind::key_missing: return PyDict_Check(value) && checks::dict_get(value, expected) == nullptr;
    case GuardKind::number_missing:
    case GuardKind::number_present: return has_number(value, *guard.place, guard.kind == GuardKind::number_present);
    case GuardKind::key_present: return PyDict_Check(value) && checks::dict_get(value, expected) != nullptr;
    case GuardKind::set_items: return checks::same_items_of_set(value, expected);
    case GuardKind::same_object: return value == registers_[guard.other.value];
    case GuardKind::different_object: return value != registers_[guard.other.value];
    case GuardKind::function_parts: return checks::same_function_parts(value, expected);
    case GuardKind::type_attribute: return compat::type_lookup(reinterpret_cast<PyTypeObject*>(value), guard.key.get()) == expected;
    case GuardKind::cached_result: return keeps_as_expected(value, expected);
    case GuardKind::special_methods: return finds_special_methods(reinterpret_cast<PyTypeObject*>(value), expected);
    case GuardKind::base_order: return reinterpret_cast<PyTypeObject*>(value)->tp_mro == expected;
    case GuardKind::more_items: return static_cast<bool>(upcoming_item(value, guard.number));
    case GuardKind::no_more_items: return !upcoming_item(value, guard.number);
    case GuardKind::cell_empty: return PyCell_Check(value) && PyCell_GET(value) == nullptr;
    case GuardKind::slot_empty: return PyObject_TypeCheck(value, PyDescr_TYPE(expected)) && *compat::place_of_slot(value, expected) == nullptr;
    case GuardKind::value_check: return guard.check->holds(value);
    case GuardKind::distinct: return distinct_holds(guard);
    case GuardKind::numbers: return guard.numbers->holds(registers_.data());
  }
  return false;
}

// ---- gates

bool CheckMachine::gate_holds(const CheckInstruction& gate) const noexcept {
  const Stamp& stamp = stamps_[gate.stamp];
  PyObject* value = registers_[gate.source];
  if (stamp.object != value) return false;
  if (gate.op == CheckOp::type_gate) return stamp.version == compat::type_version(reinterpret_cast<PyTypeObject*>(value));
  return stamp.version == compat::dict_version(value);
}

void CheckMachine::set_stamp(const CheckInstruction& at) noexcept {
  PyObject* value = registers_[at.source];
  if (!trust_versions_) return;
  if (at.op == CheckOp::type_stamp) {
    const std::uint32_t version = compat::type_version(reinterpret_cast<PyTypeObject*>(value));
    stamps_[at.stamp] = version ? Stamp{value, version} : Stamp{};
  } else if (compat::kHasDictVersions && PyDict_Check(value) && !keeps_own_order(value)) {  // an OrderedDict counts no change of its order
    stamps_[at.stamp] = {value, compat::dict_version(value)};
  }
}

// ---- running

bool CheckMachine::step(const CheckInstruction& now, const CallArguments& call) noexcept {
  PyObject*& value = registers_[now.source];
  switch (now.op) {
    case CheckOp::fetch: return (value = fetch(source(now.source), call)) != nullptr;
    case CheckOp::fetch_argument: value = call.values[now.number]; return true;
    case CheckOp::fetch_instance_dict: return (value = compat::instance_dict(registers_[now.jump])) != nullptr;
    case CheckOp::fetch_dict_item: {
      PyObject* dict = registers_[now.jump];
      return PyDict_Check(dict) && (value = checks::dict_get(dict, now.object)) != nullptr;
    }
    case CheckOp::check: return holds(guards_[now.guard]);
    case CheckOp::check_type: return reinterpret_cast<PyObject*>(Py_TYPE(value)) == now.object;
    case CheckOp::check_identity:
    case CheckOp::check_unmoved: return value == now.object;
    case CheckOp::check_dict_size: return PyDict_GET_SIZE(value) == now.number;
    default: return true;
  }
}

std::uint32_t CheckMachine::run(std::span<const CheckInstruction> code, const CallArguments& call, bool gates) noexcept {
  const std::uint32_t size = static_cast<std::uint32_t>(code.size());
  for (std::uint32_t at = 0; at < size; ++at) {
    const CheckInstruction& now = code[at];
    switch (now.op) {
      case CheckOp::dict_gate:
      case CheckOp::type_gate:
        if (gates && !holds_values_ && gate_holds(now)) at = now.jump - 1;
        else stamps_[now.stamp] = {};
        break;
      case CheckOp::dict_stamp:
      case CheckOp::type_stamp: set_stamp(now); break;
      default:
        if (!step(now, call)) return at;
        if (holds_values_ && now.op <= CheckOp::fetch_dict_item) temporaries_.push_back(Ref::borrow(registers_[now.source]));
    }
  }
  return size;
}

}  // namespace tenon::python
