#include "python/evaluator/variables.h"

#include <fmt/format.h>

#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

[[noreturn]] void raise_name_error(PyObject* type, const char* format, PyObject* name) {
  PyErr_Format(type, format, name);
  if (type == PyExc_NameError) {  // suggestions read it
    Ref exception = compat::take_exception();
    checked(PyObject_SetAttr(exception.get(), names().name, name));
    compat::set_exception(std::move(exception));
  }
  throw PythonError();
}

}  // namespace

void Variables::op(Frame& f, const Instruction& i) {
  switch (i.op) {
    case Op::make_cell: op_make_cell(f, i); return;
    case Op::copy_free_vars: {
      const int first = f.code->local_count() - i.arg;
      for (int n = 0; n < i.arg; ++n) f.locals[first + n] = {Ref::borrow(PyTuple_GET_ITEM(f.closure.get(), n)), {}};
      return;
    }
    case Op::load_closure: core_.push(Ref::borrow(cell_at(f, i.arg))); return;
    case Op::load_deref: core_.push(load_cell(f, i.arg)); return;
    case Op::store_deref: op_store_deref(f, i); return;
    case Op::delete_deref: op_delete_deref(f, i); return;
    case Op::load_class_deref:
    case Op::load_from_dict_or_deref: {
      Ref space = i.op == Op::load_class_deref ? f.class_namespace : core_.pop();
      PyObject* value = space ? PyDict_GetItemWithError(space.get(), f.code->local_name(i.arg)) : nullptr;
      core_.push(value ? Ref::borrow(value) : load_cell(f, i.arg));
      return;
    }
    case Op::load_global: {
      if (i.flags & kPushNullBefore) f.stack.emplace_back();
      core_.push(load_global(f, f.code->name(i.arg)));
      if (i.flags & kPushNullAfter) f.stack.emplace_back();
      return;
    }
    case Op::load_name: core_.push(load_name(f, f.code->name(i.arg))); return;
    case Op::load_from_dict_or_globals: {
      Ref space = core_.pop();
      PyObject* value = PyDict_GetItemWithError(space.get(), f.code->name(i.arg));
      core_.push(value ? Ref::borrow(value) : load_global(f, f.code->name(i.arg)));
      return;
    }
    case Op::load_locals: core_.push(f.class_namespace); return;
    case Op::store_name: {
      if (!f.class_namespace) throw GraphBreak("a name is stored outside of a function");
      Ref value = core_.pop();
      core_.items().store(f.class_namespace.get(), f.code->name(i.arg), value.get());
      return;
    }
    case Op::store_global: {
      Ref value = core_.pop();
      heap_.make_known(f.globals.get(), heap_.sources().constant(f.globals.get()));
      heap_.store_key(f.globals.get(), f.code->name(i.arg), value.get());
      return;
    }
    case Op::delete_global: {
      heap_.make_known(f.globals.get(), heap_.sources().constant(f.globals.get()));
      if (!heap_.dict_contains(f.globals.get(), f.code->name(i.arg))) raise_name_error(PyExc_NameError, "name '%U' is not defined", f.code->name(i.arg));
      heap_.store_key(f.globals.get(), f.code->name(i.arg), nullptr);
      return;
    }
    case Op::delete_name:
      if (!f.class_namespace) throw GraphBreak("a name is deleted outside of a function");
      core_.items().store(f.class_namespace.get(), f.code->name(i.arg), nullptr);
      return;
    case Op::load_build_class: core_.push(load_global(f, names().__build_class__)); return;
    case Op::setup_annotations: {
      if (!f.class_namespace) throw GraphBreak("annotations outside of a class body");
      if (PyDict_GetItemWithError(f.class_namespace.get(), names().__annotations__) == nullptr)
        checked(PyDict_SetItem(f.class_namespace.get(), names().__annotations__, heap_.born(checked(PyDict_New())).get()));
      return;
    }
    case Op::load_assertion_error: core_.push(Ref::borrow(PyExc_AssertionError)); return;
    case Op::import_name: op_import_name(f, i); return;
    case Op::import_from: op_import_from(f, i); return;
    default: throw GraphBreak(fmt::format("instruction {} is not evaluated", static_cast<int>(i.op)));
  }
}

void Variables::op_load_fast(Frame& f, const Instruction& i) {
  const Slot& slot = f.locals[i.arg];
  if (!slot.object)
    raise_name_error(PyExc_UnboundLocalError, "cannot access local variable '%U' where it is not associated with a value", f.code->local_name(i.arg));
  f.stack.push_back(slot);
}

void Variables::op_make_cell(Frame& f, const Instruction& i) {
  Slot& slot = f.locals[i.arg];
  Ref value = slot.object ? core_.force(slot) : Ref();
  slot = {heap_.born(checked(PyCell_New(value.get()))), {}};
}

PyObject* Variables::cell_at(Frame& f, int slot) { return f.locals[slot].object.get(); }

Ref Variables::load_cell(Frame& f, int slot) {
  PyObject* cell = cell_at(f, slot);
  PyObject* value = PyCell_GET(cell);
  const SourceId source = heap_.source_of(cell);
  if (value == nullptr) {
    if (source && !heap_.wrote_cell(cell)) heap_.guards().add(GuardKind::cell_empty, source);
    const bool own = slot < f.code->local_count() - f.code->code()->co_nfreevars;
    if (own) raise_name_error(PyExc_UnboundLocalError, "cannot access local variable '%U' where it is not associated with a value", f.code->local_name(slot));
    raise_name_error(PyExc_NameError, "cannot access free variable '%U' where it is not associated with a value in enclosing scope", f.code->local_name(slot));
  }
  return heap_.part(SourceKind::cell_contents, cell, value);
}

void Variables::op_store_deref(Frame& f, const Instruction& i) {
  Ref value = core_.pop();
  heap_.store_cell(cell_at(f, i.arg), value.get());
}

void Variables::op_delete_deref(Frame& f, const Instruction& i) {
  load_cell(f, i.arg);  // raises when there is nothing to delete
  heap_.store_cell(cell_at(f, i.arg), nullptr);
}

Ref Variables::load_global(Frame& f, PyObject* name) {
  heap_.make_known(f.globals.get(), heap_.sources().constant(f.globals.get()));
  if (Ref value = heap_.dict_item(f.globals.get(), name)) return value;
  heap_.make_known(f.builtins.get(), heap_.sources().constant(f.builtins.get()));
  if (Ref value = heap_.dict_item(f.builtins.get(), name)) return value;
  raise_name_error(PyExc_NameError, "name '%U' is not defined", name);
}

Ref Variables::load_name(Frame& f, PyObject* name) {
  if (f.class_namespace)
    if (PyObject* value = PyDict_GetItemWithError(f.class_namespace.get(), name)) return Ref::borrow(value);
  return load_global(f, name);
}

namespace {

/// `from package import name` imports submodules that are not there yet.
void require_submodules(PyObject* module, PyObject* from_list) {
  if (!PyTuple_Check(from_list) || !PyObject_HasAttrString(module, "__path__")) return;
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(from_list); ++at)
    if (!PyObject_HasAttr(module, PyTuple_GET_ITEM(from_list, at))) throw GraphBreak(fmt::format("'{}' is imported for the first time", PyUnicode_AsUTF8(PyTuple_GET_ITEM(from_list, at))), kImportHint);
}

}  // namespace

/// The full name of what a relative import means, as importlib finds it from the module's package.
Ref Variables::name_of_relative_import(Frame& f, PyObject* name, long level) {
  Ref package = heap_.dict_item(f.globals.get(), checked(PyUnicode_InternFromString("__package__")).get());
  if (!package || !PyUnicode_CheckExact(package.get()) || PyUnicode_GET_LENGTH(package.get()) == 0) throw GraphBreak("a relative import without a package");
  std::string full = PyUnicode_AsUTF8(package.get());
  for (; level > 1; --level) {
    const std::size_t dot = full.rfind('.');
    if (dot == std::string::npos) throw GraphBreak("a relative import beyond the top-level package");
    full.resize(dot);
  }
  if (PyUnicode_GET_LENGTH(name) > 0) full += std::string(".") + PyUnicode_AsUTF8(name);
  PyObject* made = checked(PyUnicode_FromString(full.c_str())).release();
  PyUnicode_InternInPlace(&made);
  return Ref::steal(made);
}

void Variables::op_import_name(Frame& f, const Instruction& i) {
  Ref from_list = core_.pop(), level = core_.pop();
  const long up = PyLong_AsLong(level.get());
  const Ref wanted = up == 0 ? Ref::borrow(f.code->name(i.arg)) : name_of_relative_import(f, f.code->name(i.arg), up);
  PyObject* name = wanted.get();
  PyObject* modules = PyImport_GetModuleDict();
  heap_.make_known(modules, heap_.sources().constant(modules));
  if (from_list.is(Py_None)) {
    const std::string full = PyUnicode_AsUTF8(name);
    if (!heap_.dict_item(modules, name)) throw GraphBreak(fmt::format("'{}' is imported for the first time", full), kImportHint);
    Ref top = checked(PyUnicode_FromString(full.substr(0, full.find('.')).c_str()));
    core_.push(heap_.dict_item(modules, top.get()));
    return;
  }
  Ref module = heap_.dict_item(modules, name);
  if (!module) throw GraphBreak(fmt::format("'{}' is imported for the first time", PyUnicode_AsUTF8(name)), kImportHint);
  require_submodules(module.get(), from_list.get());
  core_.push(std::move(module));
}

void Variables::op_import_from(Frame& f, const Instruction& i) {
  Ref module = Ref::borrow(core_.peek(1));
  std::optional<Ref> found = core_.attributes().find(module.get(), f.code->name(i.arg));
  if (!found) throw GraphBreak("a submodule is imported for the first time", kImportHint);
  core_.push(std::move(*found));
}

}  // namespace tenon::python
