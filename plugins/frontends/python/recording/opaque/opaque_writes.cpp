#include "python/recording/opaque/opaque_writes.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/foreign/opaque_purity.h"
#include "python/library/random_state.h"
#include "python/objects/graph_break.h"
#include "python/recording/opaque/drawing_order.h"
#include "python/recording/opaque/opaque_twins.h"

namespace tenon::python {
namespace {

/// The one overload that a call of an operator means; empty where that depends on its arguments.
Ref single_overload(PyObject* callable) {
  Ref names = Ref::steal(PyObject_CallMethod(callable, "overloads", nullptr));
  if (!names) {
    PyErr_Clear();
    return Ref::borrow(callable);
  }
  return PyList_GET_SIZE(names.get()) == 1 ? checked(PyObject_GetAttr(callable, PyList_GET_ITEM(names.get(), 0))) : Ref();
}

bool is_written(PyObject* schema_argument) {
  Ref alias = checked(PyObject_GetAttrString(schema_argument, "alias_info"));
  if (alias.is(Py_None)) return false;
  Ref written = checked(PyObject_GetAttrString(alias.get(), "is_write"));
  return written.is(Py_True);
}

bool gives_an_argument(PyObject* schema) {
  Ref returns = checked(PyObject_GetAttrString(schema, "returns"));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(returns.get()); ++i) {
    Ref alias = checked(PyObject_GetAttrString(PyList_GET_ITEM(returns.get(), i), "alias_info"));
    if (!alias.is(Py_None)) return true;
  }
  return false;
}

}  // namespace

/// The tensors among the arguments that an operator's schema says it writes.
std::vector<OpaqueWrites::Index> OpaqueWrites::declared_writes(PyObject* schema, const ForeignFunction& function, PyObject* args, PyObject* kwargs) const {
  std::vector<Index> written;
  Ref arguments = checked(PyObject_GetAttrString(schema, "arguments"));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arguments.get()); ++i) {
    PyObject* argument = PyList_GET_ITEM(arguments.get(), i);
    if (!is_written(argument)) continue;
    Ref name = checked(PyObject_GetAttrString(argument, "name"));
    PyObject* given = i < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, i) : kwargs ? PyDict_GetItem(kwargs, name.get()) : nullptr;
    if (!given || given == Py_None) continue;
    Ref alone = checked(PyTuple_Pack(1, given));
    const std::vector<Index> found = stand_ins_.among(alone.get(), nullptr);
    if (found.empty()) throw GraphBreak(fmt::format("{} writes into a tensor that is none of the program's", function.name));
    written.insert(written.end(), found.begin(), found.end());
  }
  return written;
}

std::optional<Ref> OpaqueWrites::record_declared(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (!function.operator_object) return std::nullopt;
  const Purity& purity = purity_of(callable, function);
  Ref overload = purity.foreign && purity.known && purity.writes && !purity.undeclared ? single_overload(callable) : Ref();
  Ref schema = overload ? checked(PyObject_GetAttrString(overload.get(), "_schema")) : Ref();
  if (!schema || gives_an_argument(schema.get()) || takes_random_numbers(function, purity, args, kwargs)) return std::nullopt;
  OpaqueUse use;
  use.declared = declared_writes(schema.get(), function, args, kwargs);
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  std::vector<long> versions;
  for (Index target : use.declared) {
    memory_.require_writable(target);
    if (std::ranges::count(operands, target) != 1) throw GraphBreak(fmt::format("{} writes a tensor that is given twice", function.name));
    for (const Index& operand : operands)
      if (operand != target) memory_.require_apart(function, target, {&operand, 1}, true);
    versions.push_back(version_of(stand_ins_.twin(target)));
  }
  const std::size_t first_node = graph_.nodes().size();
  Ref result = opaque_.record(callable, function, args, kwargs, use);
  for (std::size_t i = 0; i < use.declared.size(); ++i) {
    const Index target = use.declared[i];
    const long counted = version_of(stand_ins_.twin(target)) - versions[i];  // at least one in the real call, whose body is not known here
    present_.write(target, use.left[i]);
    for (long more = 1; more < counted; ++more) stand_ins_.count_write(target);
    inputs_.note_write(target);
  }
  trace_.add(callable, function, args, kwargs, result, first_node);
  return result;
}

ir::ValueId OpaqueWrites::value_by_torch(PyObject* callable, const ForeignFunction& function, Index target, PyObject* args, PyObject* kwargs) {
  const Purity& purity = purity_of(callable, function);
  if (!purity.known || purity.undeclared || purity.writes_several || names_a_generator(kwargs)) throw GraphBreak(fmt::format("Tenon has no op for {}", function.name), kAllowHint);
  std::optional<KeptGenerator> kept;
  OpaqueUse use;
  use.random = takes_random_numbers(function, purity, args, kwargs);
  use.written = target;
  if (use.random) kept.emplace();
  opaque_.record(callable, function, args, kwargs, use);
  return use.value;
}

ir::ValueId OpaqueWrites::value_by_numpy(PyObject* callable, const ForeignFunction& function, Index target, PyObject* args, PyObject* kwargs) {
  if (!purity_of(callable, function).known) throw GraphBreak(fmt::format("Tenon has no op for {}", function.name), kAllowHint);
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  late_.refuse(operands);
  if (std::ranges::count(operands, target) != 1) throw GraphBreak(fmt::format("{} writes an array that is given twice", function.name));
  for (Index index : operands) {
    if (index != target && stand_ins_[index].storage == stand_ins_[target].storage && stand_ins_[index].kind == TensorKind::array)
      throw GraphBreak(fmt::format("{} writes memory that it also reads", function.name));
    if (is_complex(stand_ins_[index].dtype) && !is_complex(stand_ins_[target].dtype)) throw GraphBreak("complex numbers become real ones, of which NumPy warns");
  }
  OpaqueUse use;
  if (function.ufunc) {  // it gives what it writes
    use.written = target;
  } else {
    use.declared = {target};
    use.answer = Ref::borrow(Py_None);
  }
  opaque_.record(callable, function, args, kwargs, use);
  return use.written ? use.value : use.left.front();
}

}  // namespace tenon::python
