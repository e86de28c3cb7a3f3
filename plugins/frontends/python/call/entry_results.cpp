#include <cstring>
#include <span>

#include "python/call/cache_entry.h"
#include "python/call/program/late_outputs.h"
#include "python/call/result_views.h"
#include "python/call/program/run_frame.h"
#include "python/compat/object_layout.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/library/torch_modes.h"
#include "python/objects/gil.h"
#include "python/results/array_results.h"
#include "python/results/device_results.h"
#include "python/results/tensor_updates.h"
#include "python/results/torch_results.h"

namespace tenon::python {
namespace {

TensorSpec as_spec(const TensorOutput& output) {
  TensorSpec spec;
  spec.kind = output.tensor;
  const TorchLibrary* torch = known_torch_library();
  spec.key_set = torch && torch->direct_fields ? output.inference ? torch->inference_keys : torch->plain_keys : 0;
  return spec;
}

PyObject* new_object(const TensorOutput& output, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void*& data) {
  if (!output.device.is_host()) return new_device_tensor(output.device, output.dtype, shape, strides, data);
  if (output.tensor == TensorKind::torch) return new_torch_tensor(*known_torch_library(), output.dtype, shape, strides, data);
  return new_array(output.dtype, shape, strides, data);
}

/// A view of all of a new tensor or array that nobody has; null with an exception set.
Ref view_of_new_object(const TensorOutput& output, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void*& data) {
  const bool varies = !output.varying_shape.empty();
  Ref base = Ref::steal(varies ? new_object(output, shape, strides, data) : new_object(output, output.base->shape, output.base->strides, data));
  if (!base) return {};
  try {
    if (output.tensor == TensorKind::array) return array_view(base.get(), shape, strides, 0, true);
    return torch_view(*known_torch_library(), base.get(), shape, strides, 0);
  } catch (const PythonError&) {
    return {};
  }
}

/// Copies what a device has found into the result. False with an exception set.
bool fill_from(const LateOutputs::Memory& memory, PyObject* result) {
  try {
    const TorchLibrary& torch = *known_torch_library();
    Ref in_order = torch_view(torch, checked(PyObject_GetAttrString(result, "data")).get(), memory.given, row_major(memory.given), 0);
    Ref found = torch_view(torch, memory.tensor.get(), memory.given, row_major(memory.given), 0);
    checked(PyObject_CallMethod(in_order.get(), "copy_", "O", found.get()));
    return true;
  } catch (const PythonError&) {
    return false;
  }
}

}  // namespace

/// Makes the objects of the results, and where the program writes them.
bool CacheEntry::make_outputs(RunFrame& frame) {
  for (std::size_t i = 0; i < captured_.tensors.size(); ++i) {
    const TensorOutput& output = captured_.tensors[i];
    if (output.kind != TensorOutput::Kind::fresh) continue;
    void*& data = frame.output_data[output.index];
    if (output.late || is_postponed(output)) data = nullptr;
    else if (output.tensor == TensorKind::scalar) data = frame.output_scalars[output.index].bytes;
    else if (!make_output(frame, i, data)) return false;
  }
  return true;
}

/// The object of a result whose size is known, and where its elements lie. False with an exception set.
bool CacheEntry::make_output(RunFrame& frame, std::size_t tensor, void*& data) const {
  const TensorOutput& output = captured_.tensors[tensor];
  SmallArray<std::int64_t, 12> sizes(2 * output.varying_shape.size());
  std::span<const std::int64_t> shape = output.shape, strides = output.strides;
  if (!output.varying_shape.empty()) {
    shape = {sizes.data(), output.varying_shape.size()};
    strides = {sizes.data() + output.varying_shape.size(), output.varying_shape.size()};
    evaluate_layout(output, frame.symbols, sizes.data());
  }
  Py_XSETREF(frame.tensors[tensor], new_output(output, shape, strides, data));
  return frame.tensors[tensor];
}

/// Large results of a device take memory when the program first writes them: what lies there before has gone by then, or has not come yet.
void CacheEntry::find_postponed_outputs() {
  constexpr std::size_t kPostponedFrom = std::size_t{1} << 20;
  for (std::size_t i = 0; i < captured_.tensors.size(); ++i) {
    const TensorOutput& output = captured_.tensors[i];
    if (output.kind != TensorOutput::Kind::fresh || output.tensor != TensorKind::torch || output.late || output.device.is_host()) continue;
    if (output.varying_shape.empty() && byte_count(output.dtype, output.shape) < kPostponedFrom) continue;
    postponed_.resize(output_count_, kNotPostponed);
    postponed_[output.index] = static_cast<std::uint32_t>(i);
  }
}

/// Has the signature that TenonRunArgs asks for. Null when there is no memory.
void* CacheEntry::allocate_output(void* of, std::uint32_t output, const std::int64_t* sizes, std::size_t rank) noexcept {
  RunFrame& frame = *static_cast<RunFrame*>(of);
  const CacheEntry& entry = *frame.entry;
  if (entry.postponed_.empty() || entry.postponed_[output] == kNotPostponed) return LateOutputs::allocate(&frame.late, output, sizes, rank);
  const GilHeld gil;
  void* data = nullptr;
  if (entry.make_output(frame, entry.postponed_[output], data)) return data;
  frame.failure = compat::take_exception();
  return nullptr;
}

/// The object of a result; null with an exception set.
PyObject* CacheEntry::new_output(const TensorOutput& output, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void*& data) const {
  const bool torch = output.tensor == TensorKind::torch;
  const InferenceScope scope(torch ? output.inference : state_.inference(), state_.inference());
  if (scope.failed()) return nullptr;
  Ref made = output.base ? view_of_new_object(output, shape, strides, data) : Ref::steal(new_object(output, shape, strides, data));
  if (!made) return nullptr;
  if (!output.writeable) PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject*>(made.get()), NPY_ARRAY_WRITEABLE);
  if (output.writes > 0 && !count_writes(as_spec(output), made.get(), output.writes)) return nullptr;
  return made.release();
}

/// Makes the results whose size the run has found, and those that are empty, which no step has written.
bool CacheEntry::make_late_outputs(RunFrame& frame) {
  for (std::size_t i = 0; i < captured_.tensors.size(); ++i) {
    const TensorOutput& output = captured_.tensors[i];
    void* data = nullptr;
    if (output.kind == TensorOutput::Kind::fresh && is_postponed(output) && !frame.tensors[i] && !make_output(frame, i, data)) return false;
    if (!output.late) continue;
    const LateOutputs::Memory& memory = frame.late[output.index];
    const std::vector<std::int64_t> sizes = memory.sizes_of(output);
    std::vector<std::int64_t> strides(sizes.size());
    find_strides(output, sizes.data(), strides.data());
    frame.tensors[i] = new_output(output, sizes, strides, data);
    if (!frame.tensors[i]) return false;
    if (memory.tensor && !fill_from(memory, frame.tensors[i])) return false;
    if (!memory.tensor) std::memcpy(data, memory.block.data, byte_count(output.dtype, sizes));
  }
  return true;
}

/// Makes a view of an input or of a result that has been made. Throws PythonError.
void CacheEntry::make_view(RunFrame& frame, std::size_t tensor) const {
  const TensorOutput& output = captured_.tensors[tensor];
  const bool of_input = output.kind == TensorOutput::Kind::input_view;
  PyObject* base = of_input ? frame.inputs[output.index] : frame.tensors[output.index];
  const bool requires_grad = of_input && captured_.inputs[output.index].requires_grad;
  const GradMode mode(output.requires_grad || (state_.grad_enabled() && !requires_grad && !output.untracked), state_.grad_enabled());
  const InferenceScope scope(output.tensor == TensorKind::torch ? output.inference : state_.inference(), state_.inference());
  if (scope.failed()) throw PythonError();
  if (output.through && !frame.tensors[*output.through]) make_view(frame, *output.through);
  frame.tensors[tensor] = view_for(output, base, output.through ? frame.tensors[*output.through] : base, frame.symbols).release();
}

/// Makes what is no result in memory of its own; what it views has been made.
bool CacheEntry::finish_tensors(RunFrame& frame) {
  using Kind = TensorOutput::Kind;
  try {
    for (std::size_t i = 0; i < captured_.tensors.size(); ++i) {
      const TensorOutput& output = captured_.tensors[i];
      if (output.kind == Kind::fresh || output.kind == Kind::unseen || frame.tensors[i]) continue;
      if (output.kind == Kind::number) {
        frame.tensors[i] = checked(PyLong_FromLongLong(output.varying_shape[0].evaluate(frame.symbols))).release();
      } else if (output.kind == Kind::tape_float) {
        frame.tensors[i] = checked(PyFloat_FromDouble(frame.floats[output.index])).release();
      } else if (output.kind == Kind::input_crossed || output.kind == Kind::fresh_crossed) {
        PyObject* base = output.kind == Kind::input_crossed ? frame.inputs[output.index] : frame.tensors[output.index];
        frame.tensors[i] = crossed_over(base, output.tensor).release();
        if (!count_writes(as_spec(output), frame.tensors[i], output.writes)) return false;
      } else {
        make_view(frame, i);
      }
    }
    return true;
  } catch (const PythonError&) {
    return false;
  }
}

}  // namespace tenon::python
