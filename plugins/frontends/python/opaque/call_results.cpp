#include "python/opaque/call_results.h"

#include <algorithm>
#include <cstring>

#include "core/ops/catalog.h"
#include "python/compat/object_layout.h"
#include "python/library/numpy_api.h"
#include "python/library/numpy_state.h"
#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/shared_object.h"
#include "python/objects/pending_exception.h"
#include "python/results/array_results.h"
#include "python/segments/warning_state.h"

namespace tenon::python {
namespace {

/// One load without a mask, at any index, and its value is the result.
bool is_a_move(const ir::Graph& graph, ir::NodeId id) {
  auto loop = ops::loop_of(graph, id);
  if (!loop) return true;  // not known: let the library say
  if (loop->reducer || loop->element.results.size() != 1) return false;
  const ops::Instruction& last = loop->element.instructions[loop->element.results.front()];
  return last.op == ops::Primitive::load && !last.masked;
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * static_cast<float>(fraction) * 0x1p-24f;
  const std::uint32_t out = exponent == 31 ? sign | 0x7f800000u | (fraction << 13) : sign | ((exponent + 112) << 23) | (fraction << 13);
  float value;
  std::memcpy(&value, &out, sizeof value);
  return value;
}

template <class T>
T read(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

}  // namespace

bool only_moves(const ir::Graph& graph, ir::NodeId node) { return is_a_move(graph, node); }

bool moves_many_complex(const ir::Graph& graph, ir::NodeId node) {
  constexpr std::int64_t kMany = 1024;
  const auto many = [&](ir::ValueId value) {
    if (graph.value(value).kind == ir::ValueKind::literal || !is_complex(graph.type(value).dtype)) return false;
    const ir::Dim count = graph.type(value).element_count();
    return count.is_constant() && count.constant() > kMany;
  };
  return std::ranges::any_of(graph.node(node).operands, many) || std::ranges::any_of(graph.node(node).results, many);
}

bool only_moves_elements(const ir::Graph& graph, std::size_t first) {
  for (std::size_t i = first; i < graph.nodes().size(); ++i)
    if (!is_a_move(graph, graph.nodes()[i])) return false;
  return true;
}

bool kwargs_name_a_layout(PyObject* kwargs) {
  return kwargs && (PyDict_GetItemString(kwargs, "memory_format") || PyDict_GetItemString(kwargs, "order"));
}

bool is_empty_sequence(PyObject* answer) { return (PyTuple_CheckExact(answer) || PyList_CheckExact(answer)) && PySequence_Fast_GET_SIZE(answer) == 0; }

bool is_pointwise(const ForeignFunction& function) { return function.op->body || (function.ufunc && !function.has(Trait::product)); }

void set_result_type(TensorSpec& spec, const ForeignFunction& function, bool all_scalars) {
  if (function.flavour == ops::Flavour::torch) {
    spec.kind = TensorKind::torch;
    spec.type = reinterpret_cast<PyTypeObject*>(known_torch_library()->tensor.get());
    return;
  }
  const bool scalar = spec.shape.empty() && ((all_scalars && function.method) || !function.has(Trait::gives_arrays));
  spec.kind = scalar ? TensorKind::scalar : TensorKind::array;
  spec.type = &PyArray_Type;
  if (!scalar) return;
  Ref descriptor = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(numpy_type(spec.dtype))));
  spec.type = reinterpret_cast<PyArray_Descr*>(descriptor.get())->typeobj;
}

namespace {

/// A context manager that a call of the attribute with these keywords makes.
Ref context_of(const char* module, const char* name, const Ref& settings) {
  Ref made_by = checked(PyObject_GetAttrString(checked(imported(module)).get(), name));
  return checked(PyObject_VectorcallDict(made_by.get(), nullptr, 0, settings.get()));
}

/// Calls within a context manager, which leaves as after a call without an exception; the call's own is thrown.
template <class Call>
Ref call_within(PyObject* context, Call&& call) {
  checked(PyObject_CallMethod(context, "__enter__", nullptr));
  Ref answer, exception;
  try {
    answer = call();
  } catch (const PythonError&) {
    exception = compat::take_exception();
  }
  if (!Ref::steal(PyObject_CallMethod(context, "__exit__", "OOO", Py_None, Py_None, Py_None))) {
    Ref later = compat::take_exception();  // an interrupt
    if (!exception) exception = std::move(later);
  }
  if (!exception) return answer;
  compat::set_exception(std::move(exception));
  throw_python_error();
}

/// Calls under np.errstate(all=mode), with other modes of some kinds.
template <class Call>
Ref call_under_errstate(const char* mode, const ErrorHandling& others, Call&& call) {
  const KeptErrorHandling kept;
  Ref modes = ErrorHandling{others.ignored, {}}.modes();
  checked(PyDict_SetItemString(modes.get(), "all", checked(PyUnicode_FromString(mode)).get()));
  Ref scope = context_of("numpy", "errstate", modes);
  return call_within(scope.get(), call);
}

/// Calls under a filter of all warnings.
template <class Call>
Ref call_under_filter(const char* action, Call&& call) {
  Ref scope = context_of("warnings", "catch_warnings", checked(Py_BuildValue("{ss}", "action", action)));
  return call_within(scope.get(), call);
}

/// Filters of warnings stay as they are while it lives: modules that torch imports for its meta device add some, for which the program
/// has not asked.
class KeptFilters {
 public:
  KeptFilters() = default;
  KeptFilters(const KeptFilters&) = delete;
  KeptFilters& operator=(const KeptFilters&) = delete;
  ~KeptFilters() {
    const PendingException pending;
    try {
      before_.restore_filters();
    } catch (const PythonError&) {
      PyErr_Clear();
    }
  }

 private:
  WarningState before_;
};

}  // namespace

Ref call_filtered(const char* action, PyObject* callable, PyObject* args, PyObject* kwargs) {
  return call_under_filter(action, [&] { return checked(PyObject_Call(callable, args, kwargs)); });
}

Ref call_quietly(PyObject* callable, PyObject* args, PyObject* kwargs, ops::Flavour flavour) {
  if (flavour == ops::Flavour::torch) {
    const KeptFilters kept;
    return checked(PyObject_Call(callable, args, kwargs));
  }
  return call_under_filter("error", [&] { return call_under_errstate("ignore", {}, [&] { return checked(PyObject_Call(callable, args, kwargs)); }); });
}

Ref call_for_good(PyObject* callable, PyObject* args, PyObject* kwargs, ops::Flavour flavour, const ErrorHandling& handling) {
  if (flavour == ops::Flavour::torch) return checked(PyObject_Call(callable, args, kwargs));
  return call_for_good([&] { return call_filtered("error", callable, args, kwargs); }, handling);
}

Ref call_for_good(const std::function<Ref()>& call, const ErrorHandling& handling) {
  try {
    return call_under_errstate("raise", handling, call);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_FloatingPointError) && !PyErr_ExceptionMatches(PyExc_Warning)) throw;
    PyErr_Clear();
    throw GraphBreak("a call on constants of which NumPy warns every time");
  }
}

std::shared_ptr<std::vector<unsigned char>> row_major_bytes(const TensorSpec& spec, PyObject* object) {
  auto bytes = std::make_shared<std::vector<unsigned char>>();
  std::size_t count = 1;
  for (std::int64_t extent : spec.shape) count *= static_cast<std::size_t>(extent);
  const std::size_t item = size_of(spec.dtype);
  bytes->resize(count * item);
  alignas(16) unsigned char scratch[16];
  const auto* data = static_cast<const unsigned char*>(data_of(spec, object, scratch));
  if (is_row_major(spec.shape, spec.strides)) {
    std::memcpy(bytes->data(), data, bytes->size());
    return bytes;
  }
  std::vector<std::int64_t> position(spec.shape.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < position.size(); ++d) offset += position[d] * spec.strides[d];
    std::memcpy(bytes->data() + i * item, data + offset * static_cast<std::int64_t>(item), item);
    for (std::size_t d = position.size(); d-- > 0;) {
      if (++position[d] < spec.shape[d]) break;
      position[d] = 0;
    }
  }
  return bytes;
}

KeptElements kept_elements(const TensorSpec& spec, PyObject* object) {
  if (spec.device.is_host()) {
    const auto bytes = row_major_bytes(spec, object);
    return {bytes->data(), bytes};
  }
  Ref copy = checked(PyObject_CallMethod(checked(PyObject_CallMethod(object, "contiguous", nullptr)).get(), "clone", nullptr));
  Ref address = checked(PyObject_CallMethod(copy.get(), "data_ptr", nullptr));
  return {PyLong_AsVoidPtr(address.get()), shared(std::move(copy))};
}

Ref copying_function(TensorKind kind) {
  const bool torch = kind == TensorKind::torch;
  Ref module = torch ? torch_library()->module : checked(imported("numpy"));
  return checked(PyObject_GetAttrString(module.get(), torch ? "clone" : "copy"));
}

Ref function_that_keeps_strides() {
  Ref module = checked(imported("tenon._copies"));
  return checked(PyObject_GetAttrString(module.get(), "copy_with_strides"));
}

ir::Literal literal_of(DType dtype, const void* data) {
  switch (dtype) {
    case DType::b8: return read<bool>(data);
    case DType::u8: return ir::Dim(read<std::uint8_t>(data));
    case DType::i8: return ir::Dim(read<std::int8_t>(data));
    case DType::i16: return ir::Dim(read<std::int16_t>(data));
    case DType::i32: return ir::Dim(read<std::int32_t>(data));
    case DType::i64: return ir::Dim(read<std::int64_t>(data));
    case DType::f16: return static_cast<double>(half_to_float(read<std::uint16_t>(data)));
    case DType::f32: return static_cast<double>(read<float>(data));
    case DType::f64: return read<double>(data);
    default: throw GraphBreak("a number of a dtype that graphs do not carry");
  }
}

void name_results(ir::Graph& graph, std::size_t first, std::string_view function) {
  std::string name(function.substr(function.rfind('.') + 1));
  while (!name.empty() && name.back() == '_') name.pop_back();
  while (!name.empty() && name.front() == '_') name.erase(0, 1);
  if (name.empty() || graph.nodes().size() == first) return;
  const ir::Node& last = graph.node(graph.nodes().back());
  if (last.results.size() == 1) graph.set_name(last.results.front(), name);
}

}  // namespace tenon::python
