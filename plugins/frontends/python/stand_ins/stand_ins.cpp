#include "python/stand_ins/stand_ins.h"

#include <algorithm>

#include "python/library/torch_library.h"
#include "python/library/torch_state.h"
#include "python/objects/graph_break.h"
#include "python/stand_ins/array_stand_in.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/stand_ins/torch_stand_in.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

Ref make_object(const StandIn& s) {
  if (s.kind == TensorKind::torch) return make_torch_stand_in(*torch_library(), s.device, s.dtype, s.shape, s.strides, s.requires_grad);
  return make_array_stand_in();
}

}  // namespace

StandIn stand_in_of(const TensorSpec& spec, ir::ValueId value) {
  StandIn stand_in;
  stand_in.kind = spec.kind;
  stand_in.value = value;
  stand_in.dtype = spec.dtype;
  stand_in.device = spec.device;
  stand_in.shape = spec.shape;
  stand_in.strides = spec.strides;
  stand_in.type = spec.type;
  return stand_in;
}

Ref rebuilt(PyObject* sequence, const std::function<Ref(PyObject*)>& replace) {
  Ref fast = checked(PySequence_Fast(sequence, "a sequence"));
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(fast.get());
  Ref list = checked(PyList_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyList_SET_ITEM(list.get(), i, replace(PySequence_Fast_GET_ITEM(fast.get(), i)).release());
  if (PyList_CheckExact(sequence)) return list;
  if (PyTuple_CheckExact(sequence)) return checked(PyList_AsTuple(list.get()));
  if (PyObject_HasAttrString(sequence, "_make")) return checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(Py_TYPE(sequence)), "_make", "O", list.get()));
  return checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(sequence)), list.get()));
}

Ref with_replaced(PyObject* arguments, const std::function<Ref(PyObject*)>& replace) {
  if (Ref replaced = replace(arguments)) return replaced;
  const auto inside = [&](PyObject* item) { return with_replaced(item, replace); };
  if (PyTuple_Check(arguments) || PyList_CheckExact(arguments)) return rebuilt(arguments, inside);
  if (!PyDict_CheckExact(arguments)) return Ref::borrow(arguments);
  Ref copy = checked(PyDict_New());
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t position = 0; PyDict_Next(arguments, &position, &key, &value);) checked(PyDict_SetItem(copy.get(), key, inside(value).get()));
  return copy;
}

std::optional<StandIns::Index> StandIns::find(PyObject* object) const {
  if (!is_torch_stand_in(object) && Py_TYPE(object) != array_stand_in_type()) return std::nullopt;  // numbers and lists, as most arguments are
  auto found = by_object_.find(object);
  if (found == by_object_.end()) return std::nullopt;
  return found->second;
}

StandIns::Index StandIns::require(PyObject* object) const {
  auto index = find(object);
  if (!index) throw GraphBreak("a stand-in of a tensor was used in another capture than its own");
  return *index;
}

std::vector<StandIns::Index> StandIns::require(std::span<PyObject* const> objects) const {
  std::vector<Index> indices;
  for (PyObject* object : objects) indices.push_back(require(object));
  return indices;
}

void StandIns::collect(PyObject* object, std::vector<Index>& found) const {
  if (auto index = find(object)) {
    found.push_back(*index);
  } else if (PyTuple_Check(object) || PyList_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) collect(PySequence_Fast_GET_ITEM(object, i), found);
  } else if (PyDict_CheckExact(object)) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) collect(value, found);
  }
}

std::vector<StandIns::Index> StandIns::among(PyObject* args, PyObject* kwargs) const {
  std::vector<Index> found;
  collect(args, found);
  if (kwargs) collect(kwargs, found);
  return found;
}

StandIns::Index StandIns::add(StandIn stand_in) {
  stand_in.object = make_object(stand_in);
  if (stand_in.kind == TensorKind::torch && !stand_in.input) stand_in.inference |= torch_state().value_or(TorchState{}).inference();
  const auto index = static_cast<Index>(stand_ins_.size());
  by_object_.emplace(stand_in.object.get(), index);
  if (stand_in.twin) by_twin_.emplace(stand_in.twin.get(), index);
  stand_ins_.push_back(std::move(stand_in));
  return index;
}

StandIns::Index StandIns::add_owner(StandIn stand_in) {
  stand_in.storage = static_cast<std::uint32_t>(storages_.size());
  const Index index = add(std::move(stand_in));
  storages_.push_back({.first = index, .requires_grad = stand_ins_[index].requires_grad});
  return index;
}

StandIns::Index StandIns::add_reinterpreted(StandIn stand_in, std::uint32_t storage, const TwinPlace& place) {
  const std::uint32_t memory = storages_[storage].reinterprets.value_or(storage);
  const Index viewed = owner_of(memory);
  const auto bytes = [](DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); };
  const std::int64_t from = place_of_twin(twin(viewed)).offset * bytes(stand_ins_[viewed].dtype) / bytes(stand_in.dtype);
  const Index index = add_owner(std::move(stand_in));
  storage_of(index).reinterprets = memory;
  any_reinterpreted_ = true;
  storage_of(index).place = place.offset - from;
  return index;
}

bool StandIns::is_reinterpreted(Index index) const {
  if (!any_reinterpreted_) return false;
  const std::uint32_t memory = memory_of(index);
  return storage_of(index).reinterprets || std::ranges::any_of(storages_, [&](const Storage& s) { return s.reinterprets == memory; });
}

StandIns::Index StandIns::add_view(StandIn stand_in) { return add(std::move(stand_in)); }

void StandIns::show_as_newest(Index index) {
  StandIn view = std::move(stand_ins_.back());
  stand_ins_.pop_back();
  by_object_.erase(view.object.get());
  by_twin_.erase(view.twin.get());
  StandIn& s = stand_ins_[index];
  Ref native = checked(PyObject_GetAttrString(torch_library()->module.get(), "_C"));
  if (!Ref::steal(PyObject_CallMethod(native.get(), "_swap_tensor_impl", "OO", s.object.get(), view.object.get()))) {
    PyErr_Clear();
    throw GraphBreak("torch does not give a tensor the shape of another one");
  }
  s.value = view.value;
  s.shape = std::move(view.shape);
  s.strides = std::move(view.strides);
  if (!s.viewed) return;
  s.path->insert(s.path->end(), view.path->begin(), view.path->end());
  s.layout = std::move(view.layout);
}

StandIns::Index StandIns::root(Index index) const {
  while (!stand_ins_[index].crossed && stand_ins_[index].viewed) index = *stand_ins_[index].viewed;
  return index;
}

void StandIns::note_written(Index owner) {
  ++storage_of(owner).version;
  written_.push_back(owner);
}

void StandIns::count_write(Index index) {
  if (stand_ins_[index].counts_apart) return;
  StandIn& seen = stand_ins_[root(index)];
  ++(seen.crossed ? seen.writes : storage_of(index).writes);
}

// ---- twins

void StandIns::place_storage(Index index) {
  const StandIn& s = stand_ins_[index];
  const TwinPlace place = place_of_twin(s.twin.get());
  storages_[s.storage].twins.push_back({place.storage, place.offset - s.offset});
  const auto [known, is_new] = by_place_.try_emplace(place.storage, s.storage);
  if (!is_new) known->second = std::min(known->second, s.storage);
}

PyObject* StandIns::twin(Index index) {
  StandIn& s = stand_ins_[index];
  if (!s.twin) {
    Ref twin = make_twin(s.kind, s.dtype, s.shape, s.strides, s.writeable);
    if (s.kind == TensorKind::scalar) s.twin = std::move(twin);  // which has no memory that others could share, and may be one of a pair: np.False_
    else adopt_twin(index, twin.get());
  }
  return s.twin.get();
}

void StandIns::adopt_twin(Index index, PyObject* twin) {
  stand_ins_[index].twin = Ref::borrow(twin);
  by_twin_.emplace(twin, index);
  place_storage(index);
}

Ref StandIns::with_twins(PyObject* object) {
  return with_replaced(object, [&](PyObject* item) -> Ref {
    if (is_symbolic_int(item)) return checked(PyLong_FromLongLong(present_value(item)));
    if (is_symbolic_scalar(item)) return checked(scalar_of(item).integral ? PyLong_FromLong(1) : PyFloat_FromDouble(1));
    if (PySlice_Check(item)) {
      auto* slice = reinterpret_cast<PySliceObject*>(item);
      return checked(PySlice_New(with_twins(slice->start).get(), with_twins(slice->stop).get(), with_twins(slice->step).get()));
    }
    const auto index = find(item);
    return index ? Ref::borrow(twin(*index)) : Ref();
  });
}

std::optional<StandIns::Index> StandIns::of_twin(PyObject* twin) const {
  auto known = by_twin_.find(twin);
  if (known == by_twin_.end()) return std::nullopt;
  return known->second;
}

std::optional<std::uint32_t> StandIns::storage_at(const TwinPlace& place) const {
  const auto known = by_place_.find(place.storage);
  return known == by_place_.end() ? std::nullopt : std::optional(known->second);
}

std::int64_t StandIns::offset_in(std::uint32_t storage, const TwinPlace& place) const {
  return place.offset - std::ranges::find(storages_[storage].twins, place.storage, &Storage::TwinMemory::address)->first_offset;
}

}  // namespace tenon::python
