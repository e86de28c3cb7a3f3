#include "python/graph/row_major_bytes.h"

#include <cstring>

#include "python/metadata/strides.h"
#include "python/objects/graph_break.h"
#include "python/objects/shared_object.h"

namespace tenon::python {

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

}  // namespace tenon::python
