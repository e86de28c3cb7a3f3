// The elements of a tensor or array as a constant has them.
#pragma once

#include <memory>
#include <vector>

#include "python/metadata/tensor_spec.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Copies them in row-major order.
std::shared_ptr<std::vector<unsigned char>> row_major_bytes(const TensorSpec& spec, PyObject* object);

/// The elements of a tensor in row-major order on its own device, kept as they are now.
struct KeptElements {
  const void* data = nullptr;
  std::shared_ptr<const void> owner;
};
KeptElements kept_elements(const TensorSpec& spec, PyObject* object);

}  // namespace tenon::python
