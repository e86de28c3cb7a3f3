#include "python/opaque/opaque_call.h"

#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

struct Registry {
  std::mutex mutex;
  std::int64_t last = 0;
  std::unordered_map<std::int64_t, std::weak_ptr<OpaqueCall>> calls;
};

Registry& registry() {
  static auto* instance = new Registry;  // graphs may be released while the process exits
  return *instance;
}

/// Objects that nobody can change, and that say the same in every call.
bool is_plain(PyObject* object) {
  if (object == Py_None || object == Py_Ellipsis || PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
      PyComplex_CheckExact(object) || PyUnicode_CheckExact(object) || PyBytes_CheckExact(object))
    return true;
  if (PyCFunction_Check(object) || Py_TYPE(object) == &PyMethodDescr_Type) return true;
  if (PyArray_DescrCheck(object) || PyArray_IsScalar(object, Generic)) return true;
  if (PyType_Check(object)) return true;
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    return is_plain(slice->start) && is_plain(slice->stop) && is_plain(slice->step);
  }
  const TorchLibrary* torch = known_torch_library();
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return torch && (type == torch->dtype.get() || type == torch->device.get() || type == torch->layout.get() || type == torch->memory_format.get());
}

}  // namespace

bool is_result_tensor(PyObject* object) {
  const TorchLibrary* torch = known_torch_library();
  return PyArray_Check(object) || PyArray_CheckScalar(object) || (torch && torch->is_tensor(object));
}

ArgumentTemplate::ArgumentTemplate(PyObject* object, const PlaceOf& place_of) {
  if (!object) return;
  if (auto place = place_of(object)) {
    kind_ = Kind::tensor;
    place_ = *place;
  } else if (PyTuple_Check(object) || PyList_CheckExact(object)) {
    kind_ = PyList_CheckExact(object) ? Kind::list : Kind::tuple;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) items_.emplace_back(PySequence_Fast_GET_ITEM(object, i), place_of);
  } else if (PyDict_CheckExact(object)) {
    kind_ = Kind::dict;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) {
      keys_.push_back(Ref::borrow(key));
      items_.emplace_back(value, place_of);
    }
  } else if (is_plain(object)) {
    object_ = Ref::borrow(object);
  } else {
    const std::string why = fmt::format("an argument of type {} in a tensor operation", Py_TYPE(object)->tp_name);
    if (PySlice_Check(object)) throw NumberNeeded(why);
    throw GraphBreak(why);
  }
}

Ref ArgumentTemplate::fill(PyObject* const* tensors) const {
  switch (kind_) {
    case Kind::constant: return object_;
    case Kind::tensor: return Ref::borrow(tensors[place_]);
    case Kind::tuple: {
      Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(items_.size())));
      for (std::size_t i = 0; i < items_.size(); ++i) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), items_[i].fill(tensors).release());
      return tuple;
    }
    case Kind::list: {
      Ref list = checked(PyList_New(static_cast<Py_ssize_t>(items_.size())));
      for (std::size_t i = 0; i < items_.size(); ++i) PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), items_[i].fill(tensors).release());
      return list;
    }
    case Kind::dict: break;
  }
  Ref dict = checked(PyDict_New());
  for (std::size_t i = 0; i < items_.size(); ++i) checked(PyDict_SetItem(dict.get(), keys_[i].get(), items_[i].fill(tensors).get()));
  return dict;
}

int ArgumentTemplate::traverse(visitproc visit, void* arg) const {
  Py_VISIT(object_.get());
  for (const Ref& key : keys_) Py_VISIT(key.get());
  for (const ArgumentTemplate& item : items_)
    if (int stopped = item.traverse(visit, arg)) return stopped;
  return 0;
}

OpaqueCall::OpaqueCall(std::string target, Ref callable, ArgumentTemplate args, ArgumentTemplate kwargs)
    : target_(std::move(target)), callable_(std::move(callable)), args_(std::move(args)), kwargs_(std::move(kwargs)) {}

OpaqueCall::~OpaqueCall() {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  known.calls.erase(handle_);
}

std::shared_ptr<OpaqueCall> OpaqueCall::make(std::string target, Ref callable, ArgumentTemplate args, ArgumentTemplate kwargs) {
  auto call = std::make_shared<OpaqueCall>(std::move(target), std::move(callable), std::move(args), std::move(kwargs));
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  call->handle_ = ++known.last;
  known.calls.emplace(call->handle_, call);
  return call;
}

std::shared_ptr<OpaqueCall> OpaqueCall::find(std::int64_t handle) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  auto found = known.calls.find(handle);
  return found == known.calls.end() ? nullptr : found->second.lock();
}

std::vector<Ref> OpaqueCall::run(PyObject* const* tensors) const {
  Ref args = args_.fill(tensors);
  Ref kwargs = kwargs_.fill(tensors);
  Ref result = checked(PyObject_Call(callable_.get(), args.get(), kwargs.get()));
  std::vector<Ref> found;
  collect_tensors(result.get(), found);
  for (std::uint32_t place : written) found.push_back(Ref::borrow(tensors[place]));
  return found;
}

int OpaqueCall::traverse(visitproc visit, void* arg) const {
  Py_VISIT(callable_.get());
  if (int stopped = args_.traverse(visit, arg)) return stopped;
  return kwargs_.traverse(visit, arg);
}

void collect_tensors(PyObject* result, std::vector<Ref>& found) {
  if (is_result_tensor(result)) {
    found.push_back(Ref::borrow(result));
  } else if (PyTuple_Check(result) || PyList_Check(result)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) collect_tensors(PySequence_Fast_GET_ITEM(result, i), found);
  } else if (result != Py_None) {
    throw GraphBreak(fmt::format("a function that gives a {}", Py_TYPE(result)->tp_name));
  }
}

}  // namespace tenon::python
