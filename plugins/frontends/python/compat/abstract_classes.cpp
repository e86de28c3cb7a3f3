#include "python/compat/abstract_classes.h"

#include "python/objects/imported.h"
#include "python/objects/ref.h"

namespace tenon::python::compat {
namespace {

/// `_abcmodule_state` of CPython's Modules/_abc.c, in 3.11 to 3.13.
struct State {
  PyTypeObject* data_type;
  std::uint64_t registrations;
};

const std::uint64_t* found_place() {
  Ref module = Ref::steal(imported("_abc"));
  auto* state = module ? static_cast<State*>(PyModule_GetState(module.get())) : nullptr;
  Ref token = state ? Ref::steal(PyObject_CallMethod(module.get(), "get_cache_token", nullptr)) : Ref();
  const bool good = token && PyLong_Check(token.get()) && PyLong_AsUnsignedLongLong(token.get()) == state->registrations;
  PyErr_Clear();
  return good ? &state->registrations : nullptr;
}

}  // namespace

const std::uint64_t* registrations() {
  static const std::uint64_t* const place = found_place();
  return place;
}

}  // namespace tenon::python::compat
