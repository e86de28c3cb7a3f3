// Twins: objects with the metadata of a stand-in, on which the library itself answers questions without computing anything.
//
// A torch twin is a tensor on the meta device, a NumPy twin an array of untouched zero pages. Views of twins are real views: whether a
// result shares memory with an argument, and at which offset, is read from them.
#pragma once

#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/metadata/tensor_spec.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Where a twin's elements lie.
struct TwinPlace {
  const void* storage = nullptr;   // the same for twins that share memory
  std::int64_t offset = 0;         // elements from the start of the storage
};

/// Makes a twin with a storage of its own. For strides with gaps or negative steps `offset` is chosen so that all elements lie inside.
Ref make_twin(TensorKind kind, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, bool writeable);

/// A twin of other sizes, whose dimensions lie in memory in the same order, without gaps; empty where those have gaps.
Ref resized_twin(TensorKind kind, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::span<const std::int64_t> sizes, bool writeable);
/// The same with gaps where the others have some; empty for dimensions that lie in no order, as those of a tensor that was expanded.
Ref resized_twin_with_gaps(TensorKind kind, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::span<const std::int64_t> sizes, bool writeable);

/// Arguments for twins, a tuple or a dict: what is to be on a device is on the meta device.
Ref on_meta_device(PyObject* arguments);

TwinPlace place_of_twin(PyObject* twin);

/// What a result in memory of its own shows where it is a view of something that nobody has: how that lies.
struct HiddenBase {
  Extents shape, strides;
};

/// Nothing for a tensor or array that owns its memory. Throws GraphBreak for an array in memory that is no array's.
std::optional<HiddenBase> hidden_base_of(PyObject* twin);

/// The metadata of a result of the library: of a meta tensor, an array or a NumPy scalar. Throws GraphBreak for an odd one.
TensorSpec read_twin(PyObject* twin);
/// The same of one that may be lazy.
TensorSpec read_view_twin(PyObject* twin);
/// Whether a twin of torch is a view whose elements are to be conjugated or negated when they are read.
bool is_lazy(PyObject* twin);

}  // namespace tenon::python
