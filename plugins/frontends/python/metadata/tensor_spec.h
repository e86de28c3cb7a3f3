// What a captured graph assumes of one tensor, array or NumPy scalar that it is given, and the check of it on every call.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/dtype.h"
#include "core/ir/device.h"
#include "python/guards/guard_set.h"

namespace tenon::python {

/// What is said of a tensor with more than TENON_MAX_RANK of them.
inline constexpr const char* kTooManyDimensions = "a tensor of more dimensions than graphs hold";

/// The kinds of object that carry tensors.
enum class TensorKind : std::uint8_t { torch, array, scalar };

/// Whether a view was cut off from the gradient of what it shows: by detach() or `.data`, whose result torch calls no view; or because
/// what it is a view of was.
enum class Detached : std::uint8_t { no, itself, what_it_views };

/// The metadata under which a capture holds.
struct TensorSpec {
  TensorKind kind = TensorKind::torch;
  DType dtype = DType::f32;
  bool writeable = true;                // array
  bool requires_grad = false;           // torch
  PyTypeObject* type = nullptr;         // exact Python type, one that lives as long as the process
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;    // in elements
  std::uint64_t key_set = 0;            // torch with direct fields
  std::uint32_t dtype_device = 0;       // torch with direct fields

  // What varies from call to call, as bits of dimensions (a tensor of more than 32 does not vary).
  std::uint32_t free_extents = 0;            // guarded among the numbers of the segment
  std::uint32_t free_strides = 0;            // likewise
  std::vector<std::uint32_t> stride_products;  // by dimension: the extents whose product its stride is; 0: as in `strides`. Empty: none varies
  ir::Device device;  // torch

  bool varies() const { return (free_extents | free_strides) != 0; }

  bool is_parameter() const;
  /// Whether it is a tensor made in inference mode, which has no version counter.
  bool is_inference() const;
  /// "float32[3, 4]", with strides where they are not row-major.
  std::string describe() const;
};

/// Reads the metadata of an object, or says in words why no graph takes it ("a sparse tensor").
std::variant<TensorSpec, std::string> read_spec(PyObject* object);

/// Whether `object` has that metadata. About 3 ns. Never raises.
bool matches(const TensorSpec& spec, PyObject* object) noexcept;

/// The size, or the stride in elements, of one dimension. False where it cannot be read. Never raises.
bool read_extent(PyObject* object, std::uint32_t dimension, std::int64_t& value) noexcept;
bool read_stride(PyObject* object, std::uint32_t dimension, std::int64_t& value) noexcept;

/// The first element's address; a scalar's value is copied into `scratch` (16 bytes). `object` must match.
const void* data_of(const TensorSpec& spec, PyObject* object, void* scratch) noexcept;
/// Whether writing to the elements that `data_of` gives would write those of other tensors, which share them until then (torch._lazy_clone).
bool is_copied_on_write(const TensorSpec& spec, PyObject* object) noexcept;

/// The guard on one input's metadata.
class TensorCheck final : public ValueCheck {
 public:
  explicit TensorCheck(TensorSpec spec) : spec_(std::move(spec)) {}
  bool holds(PyObject* value) const noexcept override { return matches(spec_, value); }
  bool pin(PyObject* value, Pins& pins) const override;
  std::string expected() const override { return spec_.describe(); }
  std::string found(PyObject* value) const override;

 private:
  TensorSpec spec_;
};

}  // namespace tenon::python
