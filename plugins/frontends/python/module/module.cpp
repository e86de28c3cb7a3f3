// The extension module tenon._tenon.
#include "python/module/module.h"

#include "python/session/messages.h"

namespace tenon::python {
namespace {

/// The state of a capture, torch and NumPy belong to one interpreter.
bool in_main_interpreter() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return true;
  PyErr_SetString(PyExc_ImportError, "Tenon runs in the main interpreter of a process only, not in a subinterpreter");
  return false;
}

int execute(PyObject* module) {
  if (!in_main_interpreter() || !add_tensor_types(module) || !add_call_types(module)) return -1;
  listen_to_libtenon();
  return 0;
}

PyModuleDef_Slot kSlots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(execute)},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, nullptr},
};

PyModuleDef kModule = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "tenon._tenon",
    .m_doc = "The native part of Tenon's Python frontend.",
    .m_size = 0,
    .m_methods = nullptr,
    .m_slots = kSlots,
    .m_traverse = nullptr,
    .m_clear = nullptr,
    .m_free = nullptr,
};

}  // namespace
}  // namespace tenon::python

PyMODINIT_FUNC PyInit__tenon() { return PyModuleDef_Init(&tenon::python::kModule); }
