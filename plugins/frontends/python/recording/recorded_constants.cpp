#include "python/recording/recorded_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "python/foreign/foreign_arguments.h"
#include "python/foreign/opaque_purity.h"
#include "python/graph/row_major_bytes.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_device.h"
#include "python/objects/graph_break.h"
#include "python/opaque/quiet_calls.h"
#include "python/recording/numbers/number_stand_ins.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

/// Arrays that a program makes without tensors and that go into the graph by value: at most this many bytes.
constexpr std::size_t kLargestConstant = std::size_t{1} << 24;

/// Whether a text, or one among items, says that NumPy makes a date of the time at which it is called.
bool names_the_time(PyObject* given) {
  if (PyUnicode_CheckExact(given)) return PyUnicode_CompareWithASCIIString(given, "now") == 0 || PyUnicode_CompareWithASCIIString(given, "today") == 0;
  if (!PyTuple_Check(given) && !PyList_Check(given)) return false;
  return std::ranges::any_of(std::span(PySequence_Fast_ITEMS(given), static_cast<std::size_t>(PySequence_Fast_GET_SIZE(given))), names_the_time);
}

/// A float that the graph computes, among arguments, in tuples and lists too; null where there is none.
PyObject* symbolic_scalar_in(PyObject* object) {
  if (is_symbolic_scalar(object)) return object;
  if (!PyTuple_Check(object) && !PyList_Check(object)) return nullptr;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (PyObject* found = symbolic_scalar_in(PySequence_Fast_GET_ITEM(object, i))) return found;
  return nullptr;
}

}  // namespace

Ref RecordedConstants::add(PyObject* array) {
  auto read = read_spec(array);
  if (const auto* odd = std::get_if<std::string>(&read)) throw GraphBreak("the program makes " + *odd);
  TensorSpec spec = std::get<TensorSpec>(read);
  if (spec.requires_grad) throw GraphBreak("the program makes a tensor that requires grad", kGradHint);
  if (byte_count(spec.dtype, spec.shape) > kLargestConstant) throw GraphBreak("the program makes a large array in a way that is no op of Tenon");
  core_.places.require_served(spec.device);
  const KeptElements elements = kept_elements(spec, array);
  ir::Constant constant;
  constant.type = ir::Type::tensor(spec.dtype, ir::Shape(spec.shape.begin(), spec.shape.end()), spec.device);
  constant.data = elements.data;
  constant.owner = elements.owner;
  const ir::Type type = constant.type;
  const ConstantId id = core_.graph.add_constant(std::move(constant));
  const NodeId node = core_.graph.add_node("constant", {}, {{"index", ir::Dim(id.value)}}, {type});
  const TensorSpec made = spec;
  const Index index = core_.add_fresh(spec.kind, core_.graph.node(node).results.front(), made);
  core_.stand_ins[index].constant = Ref::borrow(array);
  if (spec.kind != TensorKind::scalar) core_.stand_ins[index].base = hidden_base_of(array);
  trace_.add_constant(spec.kind, array, core_.stand_ins[index].object);
  return core_.stand_ins[index].object;
}

Ref RecordedConstants::fold(PyObject* callable, PyObject* args, PyObject* kwargs) {
  const ForeignFunction& function = foreign_function(callable);
  if (function.op && function.op->traits.random) throw GraphBreak(fmt::format("{} takes random numbers", function.name), "draw from torch's or NumPy's default generator, or draw outside of the compiled function");
  if (holds_varying_number(args) || (kwargs && holds_varying_number(kwargs)))
    if (Ref made = library_makes(callable, function, args, kwargs)) return made;
  if (PyObject* scalar = symbolic_scalar_in(args)) need_scalar(core_.symbols, scalar_of(scalar), "a call without tensors");
  if (purity_of(callable, function).undeclared || (function.flavour == ops::Flavour::numpy && names_the_time(args)))
    throw GraphBreak(fmt::format("{} does more than compute", function.name), kAllowHint);
  if (function.operator_object)  // only what is known to compute may be computed once for all calls
    if (const Purity& purity = purity_of(callable, function); purity.foreign || purity.writes || !purity.known)
      throw GraphBreak(fmt::format("{} is called without a tensor, and may do more than compute", function.name), kAllowHint);
  if (PyObject* named = device_argument(function, args, kwargs)) require_one_device(*torch_library(), named);
  // Of an int in a list that it does not know NumPy makes an array of objects.
  const auto plain = [](PyObject* item) { return is_symbolic_int(item) ? specialised(item, "a call without tensors gets it") : Ref(); };
  Ref plain_args = with_replaced(args, plain), plain_kwargs = kwargs ? with_replaced(kwargs, plain) : Ref();
  Ref made = call_for_good(callable, plain_args.get(), plain_kwargs.get(), function.flavour, core_.error_handlings.now());
  if (PyTuple_Check(made.get()) || PyList_Check(made.get())) return rebuilt(made.get(), [&](PyObject* item) { return is_tensor(item) ? add(item) : Ref::borrow(item); });
  return is_tensor(made.get()) ? add(made.get()) : made;
}

/// What a call of numbers that vary gives, made by the library on every run; empty where that cannot be.
Ref RecordedConstants::library_makes(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (core_.in_branch() || !why_not_opaque(callable, function, args, kwargs, false).empty()) return {};
  try {
    return opaque_.record(callable, function, args, kwargs);
  } catch (const GraphBreak&) {
    if (core_.symbols.learned()) throw;
  }
  return {};
}

Ref RecordedConstants::item(PyObject* args) {
  const auto index = core_.stand_ins.find(PyTuple_GET_ITEM(args, 0));
  PyObject* key = PyTuple_GET_ITEM(args, 1);
  if (!index || !core_.stand_ins[*index].constant || core_.stand_ins.storage_of(*index).version != 0) return {};
  if (!core_.stand_ins.among(key, nullptr).empty() || !(PyLong_CheckExact(key) || PyTuple_CheckExact(key))) return {};
  Ref item = Ref::steal(PyObject_GetItem(core_.stand_ins[*index].constant.get(), key));
  if (!item) PyErr_Clear();
  return item && PyArray_IsScalar(item.get(), Generic) ? add(item.get()) : Ref();
}

}  // namespace tenon::python
