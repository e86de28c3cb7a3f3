#include "python/builtins/substitutes.h"

#include "python/objects/imported.h"

namespace tenon::python {

Ref substitute_for(PyObject* callable) noexcept {
  constexpr const char* kModule = "torch._dynamo.variables.functions";
  if (!is_imported(kModule)) return {};
  const Ref module = Ref::steal(imported(kModule));
  const Ref owner = module ? Ref::steal(PyObject_GetAttrString(module.get(), "PolyfilledFunctionVariable")) : Ref();
  const Ref handlers = owner ? Ref::steal(PyObject_CallMethod(owner.get(), "_get_polyfill_handlers", nullptr)) : Ref();
  PyObject* const found = handlers && PyDict_Check(handlers.get()) ? PyDict_GetItemWithError(handlers.get(), callable) : nullptr;
  Ref substitute = found ? Ref::steal(PyObject_GetAttrString(found, "__torch_dynamo_polyfill__")) : Ref();
  PyErr_Clear();
  return substitute && PyFunction_Check(substitute.get()) ? std::move(substitute) : Ref();
}

}  // namespace tenon::python
