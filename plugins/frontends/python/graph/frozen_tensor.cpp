#include "python/graph/frozen_tensor.h"

#include <fmt/format.h>

#include <cstring>

#include "python/graph/row_major_bytes.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/objects/graph_break.h"
#include "python/objects/shared_object.h"

namespace tenon::python {
namespace {

bool is_string(PyObject* key, const char* text) { return key && PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, text) == 0; }

/// Buffers are compared at each call: more bytes are not worth it.
constexpr std::size_t kMostBytesOfBuffer = 64 << 10;

/// module.__dict__["_buffers"][name]
bool is_buffer(const SourceTable& sources, SourceId source) {
  if (!source || sources[source].kind != SourceKind::dict_item) return false;
  const SourceId container = sources[source].parent;
  return container && sources[container].kind == SourceKind::dict_item && is_string(sources[container].key.get(), "_buffers");
}

}  // namespace

bool may_freeze(const TensorSpec& spec, const SourceTable& sources, SourceId source) {
  const TorchLibrary* torch = known_torch_library();
  if (!torch || spec.kind != TensorKind::torch || spec.varies() || spec.is_inference() || is_complex(spec.dtype)) return false;
  if (!spec.device.is_host() && !is_row_major(spec.shape, spec.strides)) return false;
  if (spec.is_parameter()) return true;
  return spec.device.is_host() && is_buffer(sources, source) && byte_count(spec.dtype, spec.shape) <= kMostBytesOfBuffer && is_row_major(spec.shape, spec.strides);
}

FrozenTensor::FrozenTensor(const TensorSpec& spec, PyObject* tensor)
    : spec_(spec), alias_(shared(checked(PyObject_CallMethod(tensor, "detach", nullptr)))), state_(state_of(tensor)) {
  if (!spec.is_parameter()) elements_ = row_major_bytes(spec, tensor);
}

FrozenTensor::State FrozenTensor::state_of(PyObject* tensor) const noexcept {
  State state{data_of(spec_, tensor, nullptr), 0};
  if (spec_.key_set) {
    const auto* version = layout::version(layout::impl(tensor));
    state.version = version ? static_cast<std::int64_t>(version->load()) : -1;
    return state;
  }
  Ref version = Ref::steal(PyObject_GetAttrString(tensor, "_version"));
  state.version = version ? PyLong_AsLongLong(version.get()) : -1;
  PyErr_Clear();
  return state;
}

bool FrozenTensor::same_elements(PyObject* tensor) const noexcept {
  return elements_->empty() || std::memcmp(data_of(spec_, tensor, nullptr), elements_->data(), elements_->size()) == 0;
}

bool FrozenTensor::holds(PyObject* value) const noexcept { return thawed_ || unchanged(value); }

bool FrozenTensor::pin(PyObject* value, Pins& pins) const {
  if (thawed_) return true;
  return !elements_ && spec_.key_set && layout::pin_contents(value, pins) && holds(value);
}

bool FrozenTensor::written() const noexcept { return !thawed_ && !unchanged(alias_.get()); }

std::string FrozenTensor::expected() const {
  if (thawed_) return "written by the program";
  return elements_ ? "frozen with its elements" : fmt::format("frozen at version {}", state_.version);
}

std::string FrozenTensor::found(PyObject* value) const {
  if (!matches(spec_, value)) return "another tensor";
  if (elements_) return "a tensor of other elements";
  const State now = state_of(value);
  return now.data == state_.data ? fmt::format("at version {}", now.version) : "a tensor with other memory";
}

ir::Constant FrozenTensor::constant(std::string name) const {
  ir::Constant constant;
  constant.type = ir::Type::tensor(spec_.dtype, ir::Shape(spec_.shape.begin(), spec_.shape.end()), spec_.device);
  constant.name = std::move(name);
  if (!elements_ && is_row_major(spec_.shape, spec_.strides)) {
    constant.data = state_.data;
    constant.owner = alias_;
    return constant;
  }
  auto bytes = elements_ ? elements_ : row_major_bytes(spec_, alias_.get());
  constant.data = bytes->data();
  constant.owner = bytes;
  return constant;
}

}  // namespace tenon::python
