#include "python/metadata/tensor_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "core/abi/graph_buffer.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_device.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

using Refusal = std::string;

/// Whether extents and strides are as a spec that varies demands.
template <class Extent, class Stride>
bool varying_layout_holds(const TensorSpec& spec, Extent extent, Stride stride) noexcept {
  for (std::size_t d = 0; d < spec.shape.size(); ++d) {
    if (!(spec.free_extents >> d & 1) && extent(d) != spec.shape[d]) return false;
    if (spec.free_strides >> d & 1) continue;
    std::int64_t expected = spec.strides[d];
    if (const std::uint32_t dims = spec.stride_products[d]) {
      expected = 1;
      for (std::size_t i = 0; i < spec.shape.size(); ++i)
        if (dims >> i & 1) expected *= extent(i);
    }
    if (stride(d) != expected) return false;
  }
  return true;
}

// ---- torch

std::vector<std::int64_t> integers(PyObject* tuple) {
  std::vector<std::int64_t> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) values.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
  return values;
}

/// What torch's own class says, whatever the program has put into torch.Tensor or Parameter in its place.
Ref attribute(PyObject* tensor, const char* name) {
  PyTypeObject* own = reinterpret_cast<PyTypeObject*>(known_torch_library()->tensor.get())->tp_base;
  Ref text = checked(PyUnicode_InternFromString(name));
  PyObject* descriptor = _PyType_Lookup(own, text.get());  // borrowed
  TENON_CHECK(descriptor && Py_TYPE(descriptor)->tp_descr_get, "torch's tensors have no '{}'", name);
  return checked(Py_TYPE(descriptor)->tp_descr_get(descriptor, tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor))));
}

bool flag(PyObject* tensor, const char* method) { return checked(PyObject_CallNoArgs(attribute(tensor, method).get())).is(Py_True); }

/// Whether torch dispatches on the tensor as on any other of its device.
bool has_usual_keys(const TorchLibrary& torch, ir::Device device, std::uint64_t keys) {
  return keys == (device.is_host() ? torch.plain_keys : torch_device(device).plain_keys) || is_inference_key_set(torch, device, keys);
}

/// Why a tensor of torch's own class is not one that a graph takes; empty when it is.
Refusal odd_torch(const TorchLibrary& torch, PyObject* tensor, ir::Device device) {
  if (!attribute(tensor, "layout").is(torch.strided.get())) return "a sparse tensor";
  if (attribute(tensor, "is_quantized").is(Py_True)) return "a quantized tensor";
  if (flag(tensor, "is_conj")) return "a lazily conjugated tensor";
  if (flag(tensor, "is_neg")) return "a lazily negated tensor";
  auto dtype = torch.dtype_of(attribute(tensor, "dtype").get());
  if (!dtype) return "a tensor of a dtype that graphs do not carry";
  if (torch.direct_fields) {
    void* impl = layout::impl(tensor);
    if (layout::has_tangent(impl)) return "a tensor with a forward-mode tangent";
    const std::uint64_t keys = layout::key_set(impl);
    if (layout::custom_sizes(impl) || !has_usual_keys(torch, device, keys)) return "a tensor with an unusual dispatch key set";
  }
  return {};
}

/// Whether the fields of a tensor of these dispatch keys say all that a graph asks of it.
[[gnu::always_inline]] inline bool is_said_by_fields(void* impl, std::uint64_t keys) noexcept { return layout::key_set(impl) == keys && !layout::custom_sizes(impl) && !layout::has_tangent(impl); }

/// A view that was made without gradients requires them where what it views does, which no field of its own says.
bool requires_grad_now(void* impl, PyObject* object) noexcept {
  if (layout::requires_grad(impl)) return true;
  if (!layout::autograd_meta(impl)) return false;
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  Ref answer = Ref::steal(PyObject_GetAttr(object, name));
  if (!answer) PyErr_Clear();
  return answer.is(Py_True);
}

/// Of a dense tensor in the host's memory, by the fields of the object; empty for any other, about which torch is asked.
std::optional<TensorSpec> read_fields(const TorchLibrary& torch, PyObject* tensor) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
  if (!torch.direct_fields || (type != torch.tensor.get() && type != torch.parameter.get())) return std::nullopt;
  void* impl = layout::impl(tensor);
  if (!is_said_by_fields(impl, torch.plain_keys)) return std::nullopt;
  const std::uint32_t dtype_device = layout::dtype_device(impl);
  const auto dtype = torch.dtype_of_scalar_type(static_cast<std::uint8_t>(dtype_device));
  if (!dtype) return std::nullopt;
  TensorSpec spec;
  spec.kind = TensorKind::torch;
  spec.type = Py_TYPE(tensor);
  spec.dtype = *dtype;
  spec.requires_grad = requires_grad_now(impl, tensor);
  spec.shape.assign(layout::sizes(impl), layout::sizes(impl) + layout::rank(impl));
  spec.strides.assign(layout::strides(impl), layout::strides(impl) + layout::rank(impl));
  spec.key_set = torch.plain_keys;
  spec.dtype_device = dtype_device;
  return spec;
}

std::variant<TensorSpec, Refusal> read_torch(const TorchLibrary& torch, PyObject* tensor) {
  if (std::optional<TensorSpec> plain = read_fields(torch, tensor)) return std::move(*plain);
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
  if (type != torch.tensor.get() && type != torch.parameter.get()) return fmt::format("a tensor of the subclass {}", Py_TYPE(tensor)->tp_name);  // which may see what is read of it
  TensorSpec spec;
  try {
    spec.device = device_meant_by(torch, attribute(tensor, "device").get());
  } catch (const GraphBreak& nameless) {
    return nameless.reason();
  }
  if (Refusal odd = odd_torch(torch, tensor, spec.device); !odd.empty()) return odd;
  spec.kind = TensorKind::torch;
  spec.type = Py_TYPE(tensor);
  spec.dtype = *torch.dtype_of(attribute(tensor, "dtype").get());
  spec.requires_grad = attribute(tensor, "requires_grad").is(Py_True);
  spec.shape = integers(attribute(tensor, "shape").get());
  spec.strides = integers(checked(PyObject_CallNoArgs(attribute(tensor, "stride").get())).get());
  if (torch.direct_fields) {
    spec.key_set = layout::key_set(layout::impl(tensor));
    spec.dtype_device = layout::dtype_device(layout::impl(tensor));
  }
  return spec;
}

bool matches_torch_slowly(const TensorSpec& spec, PyObject* object) noexcept {
  const TorchLibrary* torch = known_torch_library();
  try {
    auto now = read_torch(*torch, object);
    const auto* found = std::get_if<TensorSpec>(&now);
    if (!found || found->dtype != spec.dtype || found->device != spec.device || found->shape.size() != spec.shape.size() || found->requires_grad != spec.requires_grad) return false;
    if (!spec.varies()) return found->shape == spec.shape && found->strides == spec.strides;
    return varying_layout_holds(spec, [&](std::size_t d) { return found->shape[d]; }, [&](std::size_t d) { return found->strides[d]; });
  } catch (const std::exception&) {
    PyErr_Clear();
    return false;
  }
}

bool matches_torch(const TensorSpec& spec, PyObject* object) noexcept {
  if (Py_TYPE(object) != spec.type) return false;
  if (!spec.key_set) return matches_torch_slowly(spec, object);
  void* impl = layout::impl(object);
  if (!is_said_by_fields(impl, spec.key_set) || layout::dtype_device(impl) != spec.dtype_device || layout::rank(impl) != spec.shape.size()) return false;
  const std::int64_t *sizes = layout::sizes(impl), *strides = layout::strides(impl);
  if (spec.varies())
    return varying_layout_holds(spec, [&](std::size_t d) { return sizes[d]; }, [&](std::size_t d) { return strides[d]; }) &&
           requires_grad_now(impl, object) == spec.requires_grad;
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < spec.shape.size(); ++i)
    difference |= static_cast<std::uint64_t>((sizes[i] ^ spec.shape[i]) | (strides[i] ^ spec.strides[i]));
  return difference == 0 && requires_grad_now(impl, object) == spec.requires_grad;
}

// ---- NumPy

std::variant<TensorSpec, Refusal> read_array(PyObject* object) {
  if (Py_TYPE(object) != &PyArray_Type) return fmt::format("an array of the subclass {}", Py_TYPE(object)->tp_name);
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  auto dtype = dtype_of_numpy(PyArray_TYPE(array));
  if (!dtype) {
    Ref name = checked(PyObject_Str(reinterpret_cast<PyObject*>(PyArray_DESCR(array))));
    return fmt::format("an array of dtype {}", PyUnicode_AsUTF8(name.get()));
  }
  if (PyArray_ISBYTESWAPPED(array)) return "a byte-swapped array";
  if (!PyArray_ISALIGNED(array)) return "an unaligned array";
  TensorSpec spec;
  spec.kind = TensorKind::array;
  spec.type = Py_TYPE(object);
  spec.dtype = *dtype;
  spec.writeable = PyArray_ISWRITEABLE(array);
  const auto item_bytes = static_cast<std::int64_t>(size_of(*dtype));
  for (int i = 0; i < PyArray_NDIM(array); ++i) {
    if (PyArray_STRIDE(array, i) % item_bytes != 0) return "an array whose strides are no multiple of its element size";
    spec.shape.push_back(PyArray_DIM(array, i));
    spec.strides.push_back(PyArray_STRIDE(array, i) / item_bytes);
  }
  return spec;
}

bool matches_array(const TensorSpec& spec, PyObject* object) noexcept {
  if (Py_TYPE(object) != spec.type) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  const auto item_bytes = static_cast<std::int64_t>(size_of(spec.dtype));
  if (dtype_of_numpy(PyArray_TYPE(array)) != spec.dtype || PyArray_NDIM(array) != static_cast<int>(spec.shape.size()) ||
      !PyArray_ISALIGNED(array) || PyArray_ISBYTESWAPPED(array) || PyArray_ISWRITEABLE(array) != spec.writeable)
    return false;
  if (spec.varies())
    return varying_layout_holds(
        spec, [&](std::size_t d) { return static_cast<std::int64_t>(PyArray_DIM(array, static_cast<int>(d))); },
        [&](std::size_t d) { return static_cast<std::int64_t>(PyArray_STRIDE(array, static_cast<int>(d))) / item_bytes; });
  for (std::size_t i = 0; i < spec.shape.size(); ++i)
    if (PyArray_DIM(array, static_cast<int>(i)) != spec.shape[i] ||
        PyArray_STRIDE(array, static_cast<int>(i)) != spec.strides[i] * item_bytes)
      return false;
  return true;
}

std::variant<TensorSpec, Refusal> read_scalar(PyObject* object) {
  Ref descriptor = checked(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(object)));
  auto* descr = reinterpret_cast<PyArray_Descr*>(descriptor.get());
  auto dtype = dtype_of_numpy(descr->type_num);
  if (!dtype) return fmt::format("a NumPy scalar of type {}", Py_TYPE(object)->tp_name);
  Ref exact = checked(PyArray_Scalar(std::vector<char>(16).data(), descr, nullptr));
  if (exact.type() != Py_TYPE(object)) return fmt::format("a NumPy scalar of type {}", Py_TYPE(object)->tp_name);
  TensorSpec spec;
  spec.kind = TensorKind::scalar;
  spec.type = Py_TYPE(object);
  spec.dtype = *dtype;
  return spec;
}

}  // namespace

bool TensorSpec::is_parameter() const {
  const TorchLibrary* torch = known_torch_library();
  return torch && reinterpret_cast<PyObject*>(type) == torch->parameter.get();
}

bool TensorSpec::is_inference() const {
  const TorchLibrary* torch = known_torch_library();
  return key_set != 0 && torch && is_inference_key_set(*torch, device, key_set);
}

std::string TensorSpec::describe() const {
  std::vector<std::string> extents;
  for (std::size_t d = 0; d < shape.size(); ++d) extents.push_back(free_extents >> d & 1 ? "*" : std::to_string(shape[d]));
  std::string text = fmt::format("{}[{}]", name_of(dtype), fmt::join(extents, ", "));
  if (!is_row_major(shape, strides)) text += fmt::format(" with strides [{}]", fmt::join(strides, ", "));
  if (!device.is_host()) text += " on " + name_of(device);
  if (kind == TensorKind::torch && requires_grad) text += " requiring grad";
  if (kind == TensorKind::array && !writeable) text += " read-only";
  return text;
}

std::variant<TensorSpec, std::string> read_spec(PyObject* object) {
  if (PyArray_Check(object)) return read_array(object);
  if (PyArray_CheckScalar(object)) return read_scalar(object);
  const TorchLibrary* torch = torch_library();
  if (torch && torch->is_tensor(object)) {
    auto read = read_torch(*torch, object);
    if (const auto* spec = std::get_if<TensorSpec>(&read); spec && spec->shape.size() > TENON_MAX_RANK) return kTooManyDimensions;
    return read;
  }
  return fmt::format("an object of type {}", Py_TYPE(object)->tp_name);
}

bool matches(const TensorSpec& spec, PyObject* object) noexcept {
  switch (spec.kind) {
    case TensorKind::torch: return matches_torch(spec, object);
    case TensorKind::array: return matches_array(spec, object);
    case TensorKind::scalar: return Py_TYPE(object) == spec.type;
  }
  return false;
}

namespace {

bool read_through_python(PyObject* tensor, const char* method, std::uint32_t dimension, std::int64_t& value) noexcept {
  Ref answer = Ref::steal(PyObject_CallMethod(tensor, method, "I", dimension));
  if (answer) value = PyLong_AsLongLong(answer.get());
  const bool read = answer && !PyErr_Occurred();
  PyErr_Clear();
  return read;
}

}  // namespace

bool read_extent(PyObject* object, std::uint32_t dimension, std::int64_t& value) noexcept {
  if (PyArray_Check(object)) {
    value = PyArray_DIM(reinterpret_cast<PyArrayObject*>(object), static_cast<int>(dimension));
    return true;
  }
  if (!known_torch_library()->direct_fields) return read_through_python(object, "size", dimension, value);
  value = layout::sizes(layout::impl(object))[dimension];
  return true;
}

bool read_stride(PyObject* object, std::uint32_t dimension, std::int64_t& value) noexcept {
  if (PyArray_Check(object)) {
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    value = PyArray_STRIDE(array, static_cast<int>(dimension)) / PyArray_ITEMSIZE(array);
    return true;
  }
  if (!known_torch_library()->direct_fields) return read_through_python(object, "stride", dimension, value);
  value = layout::strides(layout::impl(object))[dimension];
  return true;
}

const void* data_of(const TensorSpec& spec, PyObject* object, void* scratch) noexcept {
  switch (spec.kind) {
    case TensorKind::torch: {
      if (spec.key_set) return layout::data(layout::impl(object), size_of(spec.dtype));
      Ref address = Ref::steal(PyObject_CallMethod(object, "data_ptr", nullptr));
      return PyLong_AsVoidPtr(address.get());
    }
    case TensorKind::array: return PyArray_DATA(reinterpret_cast<PyArrayObject*>(object));
    case TensorKind::scalar:
      if (PyFloat_CheckExact(object)) std::memcpy(scratch, &reinterpret_cast<PyFloatObject*>(object)->ob_fval, sizeof(double));
      else PyArray_ScalarAsCtype(object, scratch);
      return scratch;
  }
  return nullptr;
}

bool is_copied_on_write(const TensorSpec& spec, PyObject* object) noexcept {
  return spec.kind == TensorKind::torch && spec.key_set && layout::storage_deleter(layout::storage(layout::impl(object))) == known_torch_library()->lazy_deleter;
}

bool TensorCheck::pin(PyObject* value, Pins& pins) const {
  const bool words = spec_.kind == TensorKind::torch && spec_.key_set && !spec_.varies() && spec_.shape.size() <= layout::kInlineRank;
  return words && Py_TYPE(value) == spec_.type && layout::pin(value, pins) && holds(value);
}

std::string TensorCheck::found(PyObject* value) const {
  try {
    auto now = read_spec(value);
    if (auto* refused = std::get_if<std::string>(&now)) return *refused;
    const auto& spec = std::get<TensorSpec>(now);
    return spec.type == spec_.type ? spec.describe() : fmt::format("{} {}", spec.type->tp_name, spec.describe());
  } catch (const std::exception&) {
    PyErr_Clear();
    return fmt::format("an object of type {}", Py_TYPE(value)->tp_name);
  }
}

}  // namespace tenon::python
