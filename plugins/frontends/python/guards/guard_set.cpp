#include "python/guards/guard_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bool same_float(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

bool same_constant(PyObject* a, PyObject* b) noexcept {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) return same_float(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyComplex_CheckExact(a)) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return same_float(x.real, y.real) && same_float(x.imag, y.imag);
  }
  if (PyTuple_Check(a)) {
    const Py_ssize_t size = PyTuple_GET_SIZE(a);
    if (size != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < size; ++i)
      if (!same_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal == 1;
}

std::size_t GuardSet::IdentityHash::operator()(const Identity& identity) const {
  std::uint64_t hash = static_cast<std::uint64_t>(identity.kind) + 1;
  for (std::uint64_t part : {identity.place, identity.detail, identity.expected}) hash = (hash ^ part) * 0x9E3779B97F4A7C15u, hash ^= hash >> 31;
  return hash;
}

void GuardSet::add(GuardKind kind, SourceId source, PyObject* expected) {
  // Two reads of one source in one capture see one object; a constant needs no second guard even when the objects differ.
  const std::uint64_t detail = kind == GuardKind::constant ? 0 : address(expected);
  if (!is_new({kind, source.value, 0, detail})) return;
  guards_.push_back({.kind = kind, .source = source, .expected = Ref::borrow(expected), .key = {}, .other = {}, .others = {}, .check = {}, .numbers = {}});
}

void GuardSet::add_length(SourceId source, std::int64_t length) {
  if (!is_new({GuardKind::length, source.value, static_cast<std::uint64_t>(length), 0})) return;
  guards_.push_back({.kind = GuardKind::length, .source = source, .expected = {}, .key = {}, .number = length, .other = {}, .others = {}, .check = {}, .numbers = {}});
}

void GuardSet::add_items_to_come(SourceId source, std::int64_t count, bool more) {
  const GuardKind kind = more ? GuardKind::more_items : GuardKind::no_more_items;
  if (!is_new({kind, source.value, static_cast<std::uint64_t>(count), 0})) return;
  guards_.push_back({.kind = kind, .source = source, .expected = {}, .key = {}, .number = count, .other = {}, .others = {}, .check = {}});
}

void GuardSet::add_same_object(SourceId source, SourceId other) {
  if (!is_new({GuardKind::same_object, source.value, other.value, 0})) return;
  guards_.push_back({.kind = GuardKind::same_object, .source = source, .expected = {}, .key = {}, .other = other, .others = {}, .check = {}, .numbers = {}});
}

void GuardSet::add_different_object(SourceId source, SourceId other) {
  if (!is_new({GuardKind::different_object, source.value, other.value, 0})) return;
  guards_.push_back({.kind = GuardKind::different_object, .source = source, .expected = {}, .key = {}, .other = other, .others = {}, .check = {}, .numbers = {}});
}

void GuardSet::add_type_attribute(PyTypeObject* type, PyObject* name, PyObject* value) {
  if (!is_new({GuardKind::type_attribute, address(type), address(name), address(value)})) return;
  const SourceId source = sources_.constant(reinterpret_cast<PyObject*>(type));
  guards_.push_back({.kind = GuardKind::type_attribute, .source = source, .expected = Ref::borrow(value), .key = Ref::borrow(name), .other = {}, .others = {}, .check = {}, .numbers = {}});
}

void GuardSet::add_number_in_keys(SourceId source, ChosenPlace number, bool present) {
  const GuardKind kind = present ? GuardKind::number_present : GuardKind::number_missing;
  const SourceId place = sources_.chosen_item(source, std::move(number));  // told apart by it
  if (!is_new({kind, source.value, place.value, 0})) return;
  guards_.push_back({.kind = kind, .source = source, .expected = {}, .key = {}, .other = {}, .others = {}, .check = {}, .numbers = {}, .place = sources_[place].place});
}

void GuardSet::add_special_methods(PyTypeObject* type, Ref methods) {
  if (!is_new({GuardKind::special_methods, address(type), 0, 0})) return;
  const SourceId source = sources_.constant(reinterpret_cast<PyObject*>(type));
  guards_.push_back({.kind = GuardKind::special_methods, .source = source, .expected = std::move(methods), .key = {}, .other = {}, .others = {}, .check = {}, .numbers = {}});
}

void GuardSet::add_base_order(PyTypeObject* type) {
  if (!is_new({GuardKind::base_order, address(type), 0, address(type->tp_mro)})) return;
  const SourceId source = sources_.constant(reinterpret_cast<PyObject*>(type));
  guards_.push_back({.kind = GuardKind::base_order, .source = source, .expected = Ref::borrow(type->tp_mro), .key = {}, .other = {}, .others = {}, .check = {}, .numbers = {}});
}

void GuardSet::add_function_parts(SourceId source, Ref parts, PyObject* code) {
  if (!is_new({GuardKind::function_parts, source.value, address(code), 0})) return;
  guards_.push_back({.kind = GuardKind::function_parts, .source = source, .expected = std::move(parts), .key = {}, .other = {}, .others = {}, .check = {}, .numbers = {}});
}

void GuardSet::add_value_check(SourceId source, std::shared_ptr<ValueCheck> check) {
  if (are_read_again_) read_again_.insert(guards_.size());
  guards_.push_back({.kind = GuardKind::value_check, .source = source, .expected = {}, .key = {}, .other = {}, .others = {}, .check = std::move(check), .numbers = {}});
}

namespace {

/// Whether such a guard says what kind of object is at a place, so that a path may go on from there.
bool says_what_it_is(GuardKind kind) { return kind == GuardKind::type_is || kind == GuardKind::identity || kind == GuardKind::constant || kind == GuardKind::value_check; }

bool is_tuple(const std::vector<Guard>& guards, SourceId source) {
  return std::ranges::any_of(guards, [&](const Guard& guard) {
    return guard.source == source && guard.kind == GuardKind::type_is && PyType_FastSubclass(reinterpret_cast<PyTypeObject*>(guard.expected.get()), Py_TPFLAGS_TUPLE_SUBCLASS);
  });
}

}  // namespace

/// Whether whoever holds the argument that leads to it finds the same for ever: it is that argument, or an item of a tuple.
bool GuardSet::stays(const Guard& guard) const {
  if (!says_what_it_is(guard.kind) && !(guard.kind == GuardKind::length && is_tuple(guards_, guard.source))) return false;
  SourceId id = guard.source;
  while (sources_[id].kind == SourceKind::tuple_item) id = sources_[id].parent;
  return !sources_[id].parent;
}

std::vector<Guard> GuardSet::read_again() const {
  std::vector<bool> leads(sources_.size());
  for (std::size_t at : read_again_)
    for (SourceId id = guards_[at].source; id; id = sources_[id].parent) leads[id.value] = true;
  std::vector<Guard> again;
  for (std::size_t at = 0; at < guards_.size(); ++at) {
    const Guard& guard = guards_[at];
    const bool is_read = read_again_.contains(at);
    if (!is_read && !(leads[guard.source.value] && says_what_it_is(guard.kind))) continue;
    const bool of_argument = sources_.from_argument(guard.source) || (guard.other && sources_.from_argument(guard.other));
    if (!of_argument) again.push_back(guard);
    else if (is_read && !stays(guard)) throw GraphBreak(fmt::format("what runs after the call reads {} again, to which an argument of the call leads", sources_.describe(guard.source)));
  }
  return again;
}

std::string describe(const SourceTable& sources, const Guard& guard) {
  const std::string path = sources.describe(guard.source);
  switch (guard.kind) {
    case GuardKind::type_is:
      return fmt::format("type({}) is {}", path, reinterpret_cast<PyTypeObject*>(guard.expected.get())->tp_name);
    case GuardKind::identity: return fmt::format("{} is {}", path, shown(guard.expected.get()));
    case GuardKind::constant: return fmt::format("{} == {}", path, shown(guard.expected.get()));
    case GuardKind::length: return fmt::format("len({}) == {}", path, guard.number);
    case GuardKind::dict_keys: return fmt::format("tuple({}) == {}", path, shown(guard.expected.get()));
    case GuardKind::key_missing: return fmt::format("{} not in {}", shown(guard.expected.get()), path);
    case GuardKind::number_present: return fmt::format("{} in {}", describe(sources, *guard.place), path);
    case GuardKind::number_missing: return fmt::format("{} not in {}", describe(sources, *guard.place), path);
    case GuardKind::key_present: return fmt::format("{} in {}", shown(guard.expected.get()), path);
    case GuardKind::set_items: return fmt::format("{} == {}", path, shown(guard.expected.get()));
    case GuardKind::same_object: return fmt::format("{} is {}", path, sources.describe(guard.other));
    case GuardKind::different_object: return fmt::format("{} is not {}", path, sources.describe(guard.other));
    case GuardKind::function_parts: return fmt::format("{} has the same code and defaults", path);
    case GuardKind::type_attribute:
      return guard.expected ? fmt::format("{}.{} is {}", path, name_text(guard.key.get()), shown(guard.expected.get()))
                            : fmt::format("{} has no attribute {}", path, name_text(guard.key.get()));
    case GuardKind::cached_result: return fmt::format("{} holds no other result for {}", path, shown(PyTuple_GET_ITEM(guard.expected.get(), 0)));
    case GuardKind::special_methods: return fmt::format("{} has the same special methods", path);
    case GuardKind::base_order: return fmt::format("{}.__mro__ is {}", path, shown(guard.expected.get()));
    case GuardKind::more_items: return fmt::format("{} has more than {} items to come", path, guard.number);
    case GuardKind::no_more_items: return fmt::format("{} has no more than {} items to come", path, guard.number);
    case GuardKind::cell_empty: return fmt::format("{} is empty", path);
    case GuardKind::slot_empty: return fmt::format("{} of {} is empty", shown(guard.expected.get()), path);
    case GuardKind::value_check: return fmt::format("{} is {}", path, guard.check->expected());
    case GuardKind::numbers: return fmt::format("{}", fmt::join(guard.numbers->describe(), ", "));
    case GuardKind::distinct: return fmt::format("{} objects are different ones", guard.others.size());
  }
  return path;
}

}  // namespace tenon::python
