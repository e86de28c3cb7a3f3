#include "python/graph/row_major_bytes.h"

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
  copy_to_row_major(bytes->data(), data_of(spec, object, scratch), spec.shape, spec.strides, item);
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
