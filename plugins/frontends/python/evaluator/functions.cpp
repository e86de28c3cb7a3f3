#include "python/evaluator/functions.h"

#include <algorithm>

#include <fmt/format.h>

#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

PyFunctionObject* as_function(PyObject* object) { return reinterpret_cast<PyFunctionObject*>(object); }

/// Where torch asks, what it does for compilers is made for its own: it leaves out checks, hooks, warnings and names, and computes other bits.
/// Its optimizers leave out only what costs time where they ask in these methods.
bool torch_gives_other_results_to_compilers(const Frame& asking) {
  PyObject* module = PyDict_GetItemWithError(asking.globals.get(), names().__name__);
  const char* text = module != nullptr && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  if (text == nullptr) PyErr_Clear();
  if (text == nullptr || !std::string_view(text).starts_with("torch.")) return false;
  PyObject* function = asking.code->code()->co_qualname;
  for (const char* same : {"Optimizer._group_tensors_by_device_and_dtype", "Optimizer._accelerator_graph_capture_health_check"})
    if (PyUnicode_CompareWithASCIIString(function, same) == 0) return false;
  return true;
}

/// The arguments given by position or name, matched with a code object's parameters.
class Binding {
 public:
  Binding(Evaluator& evaluator, PyObject* function, Frame& frame)
      : evaluator_(evaluator), function_(function), frame_(frame), code_(frame.code->code()),
        positional_(code_->co_argcount), named_only_(code_->co_kwonlyargcount) {}

  void run(const Arguments& arguments) {
    take_positional(arguments);
    take_named(arguments);
    take_defaults();
  }

 private:
  [[noreturn]] void wrong(const char* what) {
    throw GraphBreak(fmt::format("a call of {} with {}", PyUnicode_AsUTF8(as_function(function_)->func_qualname), what));
  }
  void set(int slot, Ref value) { frame_.locals[slot] = {std::move(value), {}}; }
  bool has_extra_positional() const { return (code_->co_flags & CO_VARARGS) != 0; }
  bool has_extra_named() const { return (code_->co_flags & CO_VARKEYWORDS) != 0; }

  void take_positional(const Arguments& arguments) {
    const auto given = static_cast<int>(arguments.positional());
    for (int at = 0; at < std::min(given, positional_); ++at) set(at, arguments.values[at]);
    if (!has_extra_positional()) {
      if (given > positional_) wrong("too many arguments");
      return;
    }
    const int extra = std::max(0, given - positional_);
    Ref rest = evaluator_.heap().born(checked(PyTuple_New(extra)));
    for (int at = 0; at < extra; ++at) PyTuple_SET_ITEM(rest.get(), at, Ref(arguments.values[positional_ + at]).release());
    set(positional_ + named_only_, std::move(rest));
  }

  int parameter(PyObject* name) const {
    for (int at = code_->co_posonlyargcount; at < positional_ + named_only_; ++at) {
      PyObject* each = frame_.code->local_name(at);
      if (each == name || PyUnicode_Compare(each, name) == 0) return at;
    }
    return -1;
  }

  void take_named(const Arguments& arguments) {
    Ref rest = has_extra_named() ? evaluator_.heap().born(checked(PyDict_New())) : Ref();
    for (std::size_t at = 0; at < arguments.named(); ++at) {
      PyObject* name = PyTuple_GET_ITEM(arguments.names.get(), at);
      const Ref& value = arguments.values[arguments.positional() + at];
      const int slot = parameter(name);
      if (slot >= 0) {
        if (frame_.locals[slot].object) wrong("an argument given twice");
        set(slot, value);
      } else if (rest) {
        checked(PyDict_SetItem(rest.get(), name, value.get()));
      } else {
        wrong("an unknown argument name");
      }
    }
    if (rest) set(positional_ + named_only_ + (has_extra_positional() ? 1 : 0), std::move(rest));
  }

  void take_defaults() {
    PyObject* defaults = as_function(function_)->func_defaults;
    PyObject* by_name = as_function(function_)->func_kwdefaults;
    const int count = defaults ? static_cast<int>(PyTuple_GET_SIZE(defaults)) : 0;
    for (int at = 0; at < positional_ + named_only_; ++at) {
      if (frame_.locals[at].object) continue;
      const int nth = at - (positional_ - count);
      if (at < positional_ && nth >= 0) {
        make_part_known(defaults, SourceKind::function_defaults);
        set(at, evaluator_.heap().sequence_item(defaults, nth));
      } else if (Ref value = at >= positional_ && by_name ? named_default(by_name, at) : Ref()) {
        set(at, std::move(value));
      } else {
        wrong("too few arguments");
      }
    }
  }

  Ref named_default(PyObject* by_name, int at) {
    make_part_known(by_name, SourceKind::function_kwdefaults);
    return evaluator_.heap().dict_item(by_name, frame_.code->local_name(at));
  }

  void make_part_known(PyObject* part, SourceKind kind) {
    Heap& heap = evaluator_.heap();
    if (const SourceId source = heap.source_of(function_)) heap.make_known(part, heap.sources().part(kind, source));
  }

  Evaluator& evaluator_;
  PyObject* function_;
  Frame& frame_;
  PyCodeObject* code_;
  int positional_, named_only_;
};

/// What a function object is made of, for the guard on it. Reached through an argument it may be a fresh closure of the same code:
/// its defaults are then read through it, not compared.
void guard_function(Heap& heap, PyObject* function) {
  const SourceId source = heap.source_of(function);
  if (!source) return;
  PyFunctionObject* parts = as_function(function);
  const bool fixed = !heap.sources().from_argument(source);
  const auto part = [&](PyObject* value) { return value == nullptr ? Py_None : fixed ? value : Py_Ellipsis; };
  Ref expected = checked(PyTuple_Pack(4, parts->func_code, part(parts->func_defaults), part(parts->func_kwdefaults), parts->func_globals));
  heap.guards().add_function_parts(source, std::move(expected), parts->func_code);
  if (!fixed && parts->func_defaults) {
    heap.make_known(parts->func_defaults, heap.sources().part(SourceKind::function_defaults, source));
    heap.length(parts->func_defaults);
  }
}

bool makes_renamed_generator(PyFunctionObject* function) {
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  if (!(code->co_flags & CO_GENERATOR)) return false;
  return PyUnicode_Compare(function->func_name, code->co_name) != 0 || PyUnicode_Compare(function->func_qualname, code->co_qualname) != 0;
}

void make_cells_known(Heap& heap, PyObject* function) {
  PyObject* closure = as_function(function)->func_closure;
  const SourceId source = heap.source_of(function);
  if (closure == nullptr || !source) return;
  const SourceId all = heap.sources().part(SourceKind::function_closure, source);
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(closure); ++at) {
    PyObject* cell = PyTuple_GET_ITEM(closure, at);
    const SourceId here = heap.sources().item(SourceKind::tuple_item, all, at);
    const SourceId known = heap.source_of(cell);
    if (known && !(known == here) && heap.sources().from_argument(here)) heap.guards().add_same_object(here, known);
    heap.make_known(cell, here);
  }
}

}  // namespace

std::unique_ptr<Frame> Functions::bind(PyObject* function, Arguments arguments) {
  PyFunctionObject* parts = as_function(function);
  auto frame = std::make_unique<Frame>();
  frame->code = decoded(reinterpret_cast<PyCodeObject*>(parts->func_code));
  frame->globals = Ref::borrow(parts->func_globals);
  frame->builtins = Ref::borrow(parts->func_builtins);
  frame->closure = Ref::borrow(parts->func_closure);
  frame->locals.resize(frame->code->local_count());
  frame->stack.reserve(frame->code->code()->co_stacksize);
  Binding(core_, function, *frame).run(arguments);
  return frame;
}

std::optional<Ref> Functions::call(PyObject* function, Arguments arguments, Completion completion) {
  if (const FunctionRule* rule = rule_of_function(function)) {
    if (rule->reason != nullptr) throw GraphBreak(rule->reason, rule->hint);
    if (rule->answers_is_compiling) return Ref::borrow(options_.is_compiling && !torch_gives_other_results_to_compilers(core_.frame()) ? Py_True : Py_False);
    if (rule->closure_handler != nullptr) return rule->closure_handler(core_, function, std::move(arguments));
    if (rule->handler != nullptr) return rule->handler(core_, std::move(arguments));
    if (rule->instead != nullptr) {
      Ref other = rule->instead(core_, function, arguments);
      enter(other.get(), std::move(arguments), completion);
      return std::nullopt;
    }
  }
  if (core_.calls().recorder_takes(function) && is_as_shipped(function, arguments)) {
    try {
      return core_.calls().call_recorder(function, arguments);
    } catch (const GradientNeeded&) {
      // Of what it calls the gradients may be known.
    }
  }
  enter(function, std::move(arguments), completion);
  return std::nullopt;
}

namespace {

/// What the names that a library's function uses lead to.
class NamesOfLibrary {
 public:
  NamesOfLibrary(Heap& heap, Recorder& recorder) : heap_(heap), recorder_(recorder) {}

  bool are_own(PyObject* function, int depth = 0) {
    constexpr int kDeepest = 3;
    if (depth > kDeepest || !seen_.insert(function).second) return true;
    const PyFunctionObject* parts = as_function(function);
    PyObject* const names = reinterpret_cast<PyCodeObject*>(parts->func_code)->co_names;
    heap_.make_known(parts->func_globals, heap_.sources().constant(parts->func_globals));
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(names); ++at)
      if (!is_own(parts->func_globals, PyTuple_GET_ITEM(names, at), names, depth)) return false;
    for (Py_ssize_t at = 0; parts->func_closure != nullptr && at < PyTuple_GET_SIZE(parts->func_closure); ++at) {
      PyObject* held = PyCell_GET(PyTuple_GET_ITEM(parts->func_closure, at));
      if (held != nullptr && PyFunction_Check(held) && !are_own(held, depth + 1)) return false;
    }
    return true;
  }

 private:
  bool is_own(PyObject* dict, PyObject* name, PyObject* names, int depth) {
    PyObject* value = PyDict_GetItemWithError(dict, name);
    if (value == nullptr || !(PyFunction_Check(value) || PyCFunction_Check(value) || PyModule_Check(value))) return true;
    if (PyModule_Check(value)) {
      const std::string_view module = PyModule_GetName(value) ? PyModule_GetName(value) : "";
      PyErr_Clear();
      if (!module.starts_with("torch") && !module.starts_with("numpy")) return true;
    }
    heap_.dict_item(dict, name);
    if (!PyModule_Check(value)) return recorder_.is_own(value) && (!PyFunction_Check(value) || are_own(value, depth + 1));
    PyObject* attributes = heap_.attributes_of(value);
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(names); ++at)
      if (!is_own_of_module(attributes, PyTuple_GET_ITEM(names, at))) return false;
    return true;
  }

  bool is_own_of_module(PyObject* attributes, PyObject* name) {
    PyObject* value = PyDict_GetItemWithError(attributes, name);
    if (value == nullptr || !(PyFunction_Check(value) || PyCFunction_Check(value))) return true;
    heap_.dict_item(attributes, name);
    return recorder_.is_own(value);
  }

  Heap& heap_;
  Recorder& recorder_;
  std::unordered_set<PyObject*> seen_;
};

}  // namespace

/// Whether a function of a library that is recorded as one operation still calls what the library has it call. Guarded.
bool Functions::is_as_shipped(PyObject* function, const Arguments& arguments) {
  if (heap_.is_born(function) || !recorder_.is_own(function)) return true;  // what the program marked
  const auto [entry, fresh] = shipped_.try_emplace(function, true);
  if (fresh) entry->second = NamesOfLibrary(heap_, recorder_).are_own(function);
  if (!entry->second) return false;
  PyObject* names = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function))->co_names;
  for (const Ref& value : arguments.values) {
    if (!core_.is_stand_in(value.get()) || !heap_.traits(recorder_.apparent_type(value.get())).python_class) continue;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(names); ++at)
      if (PyObject* found = heap_.type_attribute(recorder_.apparent_type(value.get()), PyTuple_GET_ITEM(names, at)); found != nullptr && !recorder_.is_own(found)) return false;
  }
  return true;
}

void Functions::enter(PyObject* function, Arguments arguments, Completion completion) {
  PyFunctionObject* parts = as_function(function);
  if (heap_.source_of(function) == SourceId{} && !heap_.is_born(function)) heap_.make_known(function, heap_.sources().constant(function));
  if (const FunctionRule* rule = rule_of_module(function)) throw GraphBreak(rule->reason, rule->hint);
  if (options_.plain && !core_.frames().empty() && options_.plain->contains(parts->func_code)) throw PlainCall("a function that breaks often, and does little in between, is called as it is", "TENON_LOGS=graph_breaks says where it breaks; without these breaks it is compiled");
  if (reinterpret_cast<PyCodeObject*>(parts->func_code)->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)) throw GraphBreak("a coroutine is called", kAwaitHint);
  if (makes_renamed_generator(parts)) throw GraphBreak("a call of a generator function that was given another name, which its generators have");
  guard_function(heap_, function);
  make_cells_known(heap_, function);
  std::unique_ptr<Frame> frame = bind(function, std::move(arguments));
  frame->completion = completion;
  core_.push_frame(std::move(frame));
}

Ref Functions::run(PyObject* function, Arguments arguments) {
  const std::size_t base = core_.frames().size();
  enter(function, std::move(arguments), Completion::stop);
  return core_.run(base);
}

void Functions::op_make_function(Frame& f, const Instruction& i) {
  Ref code = core_.pop();
  // The flags of 3.11 and 3.12; 3.13 sets the parts by instructions of their own, and its argument is 0.
  Ref closure = i.arg & 8 ? core_.pop() : Ref();
  Ref annotations = i.arg & 4 ? core_.pop() : Ref();
  Ref by_name = i.arg & 2 ? core_.pop() : Ref();
  Ref defaults = i.arg & 1 ? core_.pop() : Ref();
  Ref function = heap_.born(checked(PyFunction_New(code.get(), f.globals.get())));
  if (closure) checked(PyFunction_SetClosure(function.get(), closure.get()));
  if (by_name) checked(PyFunction_SetKwDefaults(function.get(), by_name.get()));
  if (defaults) checked(PyFunction_SetDefaults(function.get(), defaults.get()));
  if (annotations) as_function(function.get())->func_annotations = annotations.release();
  core_.push(std::move(function));
}

void Functions::op_set_function_attribute(Frame&, const Instruction& i) {
  Ref function = core_.pop(), value = core_.pop();
  if (i.arg == 8) checked(PyFunction_SetClosure(function.get(), value.get()));
  else if (i.arg == 4) as_function(function.get())->func_annotations = value.release();
  else if (i.arg == 2) checked(PyFunction_SetKwDefaults(function.get(), value.get()));
  else checked(PyFunction_SetDefaults(function.get(), value.get()));
  core_.push(std::move(function));
}

}  // namespace tenon::python
