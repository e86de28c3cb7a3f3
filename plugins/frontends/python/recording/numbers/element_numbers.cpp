#include "python/recording/numbers/element_numbers.h"

#include <algorithm>
#include <string_view>

#include "python/heap/type_traits.h"
#include "python/library/torch_library.h"
#include "python/recording/numbers/number_stand_ins.h"
#include "python/stand_ins/late_text.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {

Ref ElementNumbers::number(PyObject* stand_in, PyTypeObject* type) {
  if (const auto index = type ? core_.stand_ins.find(stand_in) : std::nullopt)
    if (Ref known = known_.value(*index)) return checked(PyObject_CallOneArg(as_object(type), known.get()));
  if (Ref known = elements_.number(stand_in)) {
    if (!type || known.type() == type) return known;
    return is_symbolic_int(known.get()) || is_symbolic_scalar(known.get()) ? number(known.get(), type) : checked(PyObject_CallOneArg(as_object(type), known.get()));
  }
  if (is_late_text(stand_in) && late_text_of(stand_in).type == type) return Ref::borrow(stand_in);
  if (!core_.symbols.dynamic() && !core_.walked) return {};  // what computes gradients, the steps of an optimizer with them, is one graph
  if (is_symbolic_int(stand_in) || is_symbolic_scalar(stand_in)) {
    if (type_of_number(stand_in) == type) return Ref::borrow(stand_in);
    return type == &PyFloat_Type ? checked(PyNumber_TrueDivide(stand_in, checked(PyLong_FromLong(1)).get())) : arithmetic_.whole_number(stand_in, "trunc");
  }
  const Index index = core_.stand_ins.require(stand_in);
  const StandIn& s = core_.stand_ins[index];
  const ir::ValueId value = core_.present.of(index);
  if (s.kind != TensorKind::torch && !s.shape.empty()) return {};  // which NumPy refuses, or warns of
  const bool one = std::ranges::all_of(core_.graph.type(value).shape, [](const ir::Dim& d) { return d == ir::Dim(1); });
  const bool integral = !is_float(s.dtype);
  if (!one || is_bool(s.dtype) || is_complex(s.dtype) || (type == &PyLong_Type && !integral)) return {};
  const bool as_int = integral && type != &PyFloat_Type;
  const ir::ValueId constant = history_.cut(value);  // a number has no gradient
  const ir::ValueId element = core_.on_host(core_.graph.type(value).shape.empty() ? constant : core_.builder.one("reshape", {constant}, {{"shape", ir::Shape{}}}));
  ScalarValue number{.value = core_.builder.cast(element, as_int ? DType::i64 : DType::f64), .integral = as_int, .of_data = true};
  return computed_.made(std::move(number), "builtins", as_int ? "int" : "float", checked(PyTuple_Pack(1, stand_in)));
}

Ref ElementNumbers::number_in_format(PyObject* stand_in, PyObject* spec) {
  const auto index = core_.stand_ins.find(stand_in);
  if (!index || core_.alone || !core_.stand_ins[*index].shape.empty()) return {};
  const StandIn& s = core_.stand_ins[*index];
  const bool specified = PyUnicode_CheckExact(spec) && PyUnicode_GET_LENGTH(spec) > 0;
  const auto is_plain_tensor = [&] { return checked(PyObject_GetAttrString(torch_library()->module.get(), "Tensor")).is(as_object(s.type)); };
  const bool plain = s.kind == TensorKind::torch ? is_plain_tensor() : specified;
  return plain ? number(stand_in, nullptr) : Ref();
}

}  // namespace tenon::python
