#include "python/results/twins.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "python/library/torch_device.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/objects/graph_break.h"
#include "python/results/array_results.h"
#include "python/results/torch_results.h"

namespace tenon::python {
namespace {

/// Elements before and after the first one that the strides reach.
struct Span {
  std::int64_t before = 0, after = 0;
};

Span span_of(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  Span span;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return {};
    (strides[i] < 0 ? span.before : span.after) += std::abs(strides[i]) * (shape[i] - 1);
  }
  return span;
}

Ref torch_twin(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  const TorchLibrary& torch = *torch_library();
  return empty_strided(torch, torch.meta.get(), dtype, shape, strides);
}

/// calloc gives untouched pages for all but small sizes, so the zeros cost address space only. Owns its memory where it fills that.
Ref array_twin(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, bool writeable) {
  if (writeable && (is_row_major(shape, strides) || same_layout(shape, strides, dense_strides(shape, memory_order(shape, strides))))) return zeroed_array(dtype, shape, strides);
  const Span span = span_of(shape, strides);
  npy_intp elements = span.before + span.after + 1;
  Ref storage = checked(PyArray_ZEROS(1, &elements, numpy_type(dtype), 0));
  return array_view(storage.get(), shape, strides, span.before, writeable);
}

/// The array whose memory an array shows; nothing for one that owns its memory. as_strided puts an object in between that is no array.
PyObject* base_of(PyArrayObject* array) {
  PyObject* base = PyArray_BASE(array);
  if (!base || PyArray_Check(base)) return base;
  Ref inner = Ref::steal(PyObject_GetAttrString(base, "base"));
  PyErr_Clear();
  return inner && PyArray_Check(inner.get()) ? inner.get() : nullptr;  // which `base` keeps
}

/// The array at the end of the chain of bases: it owns the memory.
PyArrayObject* owner_of(PyObject* array) {
  auto* owner = reinterpret_cast<PyArrayObject*>(array);
  while (PyObject* base = base_of(owner)) owner = reinterpret_cast<PyArrayObject*>(base);
  return owner;
}

TensorSpec read_torch_twin(const TorchLibrary& torch, PyObject* twin, bool may_be_lazy) {
  TensorSpec spec;
  spec.kind = TensorKind::torch;
  spec.type = reinterpret_cast<PyTypeObject*>(torch.tensor.get());
  auto attribute = [&](const char* name) { return checked(PyObject_GetAttrString(twin, name)); };
  if (!attribute("layout").is(torch.strided.get())) throw GraphBreak("an operation that gives a tensor of another layout");
  if (!may_be_lazy && is_lazy(twin)) throw GraphBreak("an operation that gives a lazily conjugated or negated tensor");
  auto dtype = torch.dtype_of(attribute("dtype").get());
  if (!dtype) throw GraphBreak("an operation that gives a tensor of a dtype that graphs do not carry");
  spec.dtype = *dtype;
  Ref shape = attribute("shape"), strides = checked(PyObject_CallMethod(twin, "stride", nullptr));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape.get()); ++i) {
    spec.shape.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(shape.get(), i)));
    spec.strides.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(strides.get(), i)));
  }
  return spec;
}

}  // namespace

bool is_lazy(PyObject* twin) {
  const auto says = [&](const char* name) { return checked(PyObject_CallMethod(twin, name, nullptr)).is(Py_True); };
  return says("is_conj") || says("is_neg");
}

Ref make_twin(TensorKind kind, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, bool writeable) {
  if (kind == TensorKind::torch) return torch_twin(dtype, shape, strides);
  Ref array = array_twin(dtype, shape, strides, writeable);
  if (kind == TensorKind::array) return array;
  return Ref::steal(new_array_scalar(dtype, PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.get()))));
}

namespace {

/// The strides of a tensor with gaps for other sizes, with gaps after the same dimensions; nothing where dimensions do not lie within each other.
std::optional<Extents> resized_strides(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::span<const std::int64_t> sizes) {
  std::vector<std::size_t> order(shape.size());  // fastest first
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return strides[a] != strides[b] ? strides[a] < strides[b] : a > b; });
  Extents resized(shape.size());
  std::int64_t reached = 1, next = 1;  // of the dimensions so far
  for (const std::size_t dim : order) {
    if (strides[dim] < reached) return std::nullopt;
    resized[dim] = next + (strides[dim] - reached);
    reached = strides[dim] * std::max<std::int64_t>(shape[dim], 1);
    next = resized[dim] * std::max<std::int64_t>(sizes[dim], 1);
  }
  return resized;
}

}  // namespace

Ref resized_twin(TensorKind kind, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::span<const std::int64_t> sizes, bool writeable) {
  const std::vector<std::int64_t> order = memory_order(shape, strides);
  if (!same_layout(shape, strides, dense_strides(shape, order))) return {};
  return make_twin(kind, dtype, sizes, dense_strides(sizes, order), writeable);
}

Ref resized_twin_with_gaps(TensorKind kind, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::span<const std::int64_t> sizes, bool writeable) {
  if (Ref dense = resized_twin(kind, dtype, shape, strides, sizes, writeable)) return dense;
  const auto with_gaps = resized_strides(shape, strides, sizes);
  return with_gaps ? make_twin(kind, dtype, sizes, *with_gaps, writeable) : Ref();
}

namespace {

/// Whether a positional argument names a device: torch.device("cpu"), "cpu", "meta:0".
bool names_a_device(const TorchLibrary& torch, PyObject* argument) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(argument)) == torch.device.get()) return true;
  if (!PyUnicode_Check(argument)) return false;
  const char* text = PyUnicode_AsUTF8(argument);
  const std::string word = text ? text : "";
  return !word.empty() && is_kind_of_device(torch, word.substr(0, word.find(':')));
}

Ref dict_on_meta_device(const TorchLibrary& torch, PyObject* kwargs) {
  PyObject* device = PyDict_GetItemString(kwargs, "device");
  if (!device || device == Py_None) return Ref::borrow(kwargs);
  Ref copy = checked(PyDict_Copy(kwargs));
  checked(PyDict_SetItemString(copy.get(), "device", torch.meta.get()));
  return copy;
}

}  // namespace

Ref on_meta_device(PyObject* arguments) {
  const TorchLibrary* torch = known_torch_library();
  if (!torch || !arguments) return Ref::borrow(arguments);
  if (PyDict_Check(arguments)) return dict_on_meta_device(*torch, arguments);
  Ref list = checked(PySequence_List(arguments));
  bool changed = false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    PyObject* item = PyList_GET_ITEM(list.get(), i);
    if (!names_a_device(*torch, item)) continue;
    checked(PyList_SetItem(list.get(), i, Py_NewRef(torch->meta.get())));
    changed = true;
  }
  return changed ? checked(PyList_AsTuple(list.get())) : Ref::borrow(arguments);
}

TwinPlace place_of_twin(PyObject* twin) {
  if (PyArray_Check(twin)) {
    auto* array = reinterpret_cast<PyArrayObject*>(twin);
    PyArrayObject* owner = owner_of(twin);
    return {owner, (static_cast<char*>(PyArray_DATA(array)) - static_cast<char*>(PyArray_DATA(owner))) / PyArray_ITEMSIZE(array)};
  }
  if (PyArray_CheckScalar(twin)) return {twin, 0};
  if (torch_library()->direct_fields && layout::storage(layout::impl(twin))) return {layout::storage(layout::impl(twin)), layout::storage_offset(layout::impl(twin))};
  Ref storage = checked(PyObject_CallMethod(twin, "untyped_storage", nullptr));
  Ref address = checked(PyObject_GetAttrString(storage.get(), "_cdata"));
  Ref offset = checked(PyObject_CallMethod(twin, "storage_offset", nullptr));
  return {PyLong_AsVoidPtr(address.get()), PyLong_AsLongLong(offset.get())};
}

namespace {

/// The base where the view shows all of it; else one that lies as the view does.
HiddenBase base_of_torch_view(TensorSpec view, PyObject* twin) {
  Ref base = checked(PyObject_GetAttrString(twin, "_base"));
  if (!base.is(Py_None)) {
    TensorSpec whole = read_twin(base.get());
    if (whole.dtype == view.dtype && byte_count(whole.dtype, whole.shape) == byte_count(view.dtype, view.shape) && place_of_twin(base.get()).offset == place_of_twin(twin).offset)
      return {std::move(whole.shape), std::move(whole.strides)};
  }
  return {std::move(view.shape), std::move(view.strides)};
}

}  // namespace

std::optional<HiddenBase> hidden_base_of(PyObject* twin) {
  TensorSpec spec = read_twin(twin);
  if (!PyArray_Check(twin)) {
    if (!checked(PyObject_CallMethod(twin, "_is_view", nullptr)).is(Py_True)) return std::nullopt;
    return base_of_torch_view(std::move(spec), twin);
  }
  auto* array = reinterpret_cast<PyArrayObject*>(twin);
  if (!PyArray_BASE(array)) return std::nullopt;
  PyArrayObject* owner = owner_of(twin);
  if (owner == array) throw GraphBreak("an array in memory that is no array's");
  const bool whole = PyArray_DATA(owner) == PyArray_DATA(array) && PyArray_TYPE(owner) == PyArray_TYPE(array) && PyArray_SIZE(owner) == PyArray_SIZE(array);
  if (!whole) return HiddenBase{std::move(spec.shape), std::move(spec.strides)};
  TensorSpec base = read_twin(reinterpret_cast<PyObject*>(owner));
  return HiddenBase{std::move(base.shape), std::move(base.strides)};
}

TensorSpec read_twin(PyObject* twin) {
  const TorchLibrary* torch = torch_library();
  if (torch && torch->is_tensor(twin)) return read_torch_twin(*torch, twin, false);
  auto spec = read_spec(twin);
  if (const auto* odd = std::get_if<std::string>(&spec)) throw GraphBreak(fmt::format("an operation that gives {}", *odd));
  return std::get<TensorSpec>(spec);
}

TensorSpec read_view_twin(PyObject* twin) {
  const TorchLibrary* torch = torch_library();
  return torch && torch->is_tensor(twin) ? read_torch_twin(*torch, twin, true) : read_twin(twin);
}

}  // namespace tenon::python
