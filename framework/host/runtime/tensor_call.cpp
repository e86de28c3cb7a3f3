#include "host/runtime/tensor_call.h"

#include <algorithm>

#include "core/memory/row_major.h"
#include "host/devices/tensor_copy.h"
#include "host/plugins/contact/given_tensor.h"
#include "host/runtime/run_context.h"

namespace tenon::host {
namespace {

/// What is wrong with the sizes for an output; empty when nothing is.
std::string size_defect(const RunContext& run, const PlanValue& value, std::span<const std::int64_t> sizes) {
  if (sizes.size() != value.sizes.size()) return fmt::format("it gives %{} {} dimensions instead of {}", value.name, sizes.size(), value.sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0) return fmt::format("it gives dimension {} of %{} the size {}", d, value.name, sizes[d]);
    bool known = true;
    if (!value.sizes[d].is_constant()) value.sizes[d].dim().for_each_symbol([&](SymbolId s) { known = known && run.symbols[s.value] >= 0; });
    if (!known) continue;
    const std::int64_t expected = value.sizes[d].evaluate(run.symbols);
    if (sizes[d] != expected) return fmt::format("it gives dimension {} of %{} the size {} instead of {}", d, value.name, sizes[d], expected);
  }
  std::size_t bytes = size_of(value.dtype);
  for (std::int64_t size : sizes)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(std::max<std::int64_t>(size, 1)), &bytes)) return fmt::format("it makes %{} larger than memory can be", value.name);
  return {};
}

/// Whether it is an output of known size that the artefact is to hand over.
bool is_awaited(const StepCall& state, std::uint32_t v) { return state.run->loose && state.run->loose->awaits(state.step, v); }

/// For an output that has none yet.
void* memory_for(StepCall& state, std::uint32_t v, std::vector<std::int64_t> sizes) {
  return is_awaited(state, v) ? state.run->loose->take(state.step, v) : state.run->allocate_late(v, std::move(sizes));
}

void* allocate(StepCall& state, std::uint32_t index, const std::int64_t* sizes, std::size_t rank) {
  RunContext& run = *state.run;
  const Step& step = *run.plan.steps()[state.step];
  const auto refuse = [&](std::string why) -> void* {
    state.defect = std::move(why);
    return nullptr;
  };
  if (!run.call) return refuse("it asks for memory when it does not run");
  if (index >= step.outputs.size()) return refuse(fmt::format("it asks for memory for output {} of {}", index, step.outputs.size()));
  const std::uint32_t v = step.outputs[index];
  const PlanValue& value = run.plan.values()[v];
  if (!value.late && !is_awaited(state, v)) return refuse(fmt::format("it asks for memory for %{}, whose size is known and whose memory it was given", value.name));
  if (rank && !sizes) return refuse(fmt::format("it gives no sizes for %{}", value.name));
  if (std::string defect = size_defect(run, value, {sizes, rank}); !defect.empty()) return refuse(std::move(defect));
  void* memory = memory_for(state, v, {sizes, sizes + rank});
  run.table[step.first_output + index] = memory;
  return memory;
}

void* allocate_guarded(void* self, std::uint32_t index, const std::int64_t* sizes, std::size_t rank) noexcept {
  auto& state = *static_cast<StepCall*>(self);
  try {
    return allocate(state, index, sizes, rank);
  } catch (const std::exception& e) {
    state.defect = e.what();
    return nullptr;
  }
}

/// Takes a tensor as an output. Throws what is wrong with it.
void take_tensor(StepCall& state, std::uint32_t index, DLManagedTensorVersioned* managed) {
  RunContext& run = *state.run;
  const Step& step = *run.plan.steps()[state.step];
  TENON_USER_CHECK(run.call, "it hands over a tensor when it does not run");
  TENON_USER_CHECK(index < step.outputs.size(), "it hands over output {} of {}", index, step.outputs.size());
  const std::uint32_t v = step.outputs[index];
  const PlanValue& value = run.plan.values()[v];
  const TenonHost* watched = run.plan.environment().backends[step.backend]->plugin().watched();
  if (const std::string wrong = defect_of(managed, true); !wrong.empty()) throw Exception(Code::plugin_failed, fmt::format("the tensor that it hands over as %{} {}", value.name, wrong));
  const DLTensor& tensor = managed->dl_tensor;
  Device& device = *run.plan.devices()[value.device];
  TENON_USER_CHECK(same_device(tensor.device, device.id()), "it hands over %{} on {} instead of {}", value.name, run.plan.environment().devices->name_of(tensor.device), device.name());
  TENON_USER_CHECK(dtype_of(tensor.dtype) == value.dtype, "it hands over %{} as {} instead of {}", value.name, name_of(tensor.dtype), name_of(value.dtype));
  const std::vector<std::int64_t> sizes(tensor.shape, tensor.shape + tensor.ndim);
  const std::string defect = size_defect(run, value, sizes);
  TENON_USER_CHECK(defect.empty(), "{}", defect);

  const std::vector<std::int64_t> row_major = row_major_strides(sizes);
  const std::vector<std::int64_t> strides = tensor.strides ? std::vector<std::int64_t>(tensor.strides, tensor.strides + tensor.ndim) : row_major;
  auto* data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  const bool fits = is_row_major(sizes, strides) && reinterpret_cast<std::uintptr_t>(data) % kArenaAlignment == 0;
  if (value.place == Place::late && fits) {
    run.keep_tensor(managed, watched);
    run.late_values[v] = {data, true, sizes};
    run.table[step.first_output + index] = data;
    return;
  }
  void*& slot = run.table[step.first_output + index];
  if (fits && is_awaited(state, v)) return run.loose->keep(state.step, v, data, managed, watched);
  if (!slot) slot = memory_for(state, v, sizes);
  void* stream = run.devices ? run.devices->stream(value.device) : nullptr;
  copy_tensor({device, static_cast<std::byte*>(slot), row_major, stream}, {device, data, strides, stream}, sizes, size_of(value.dtype));
  give_back(managed, watched);
}

std::int32_t give_guarded(void* self, std::uint32_t index, DLManagedTensorVersioned* tensor) noexcept {
  auto& state = *static_cast<StepCall*>(self);
  try {
    take_tensor(state, index, tensor);
    return TENON_OK;
  } catch (const std::exception& e) {
    state.defect = e.what();
    give_back(tensor, nullptr);  // the call that hands it over is watched
    return TENON_INVALID_ARGUMENT;
  }
}

}  // namespace

TenonCall tensor_call(StepCall& state) { return {sizeof(TenonCall), &state, &allocate_guarded, &give_guarded}; }

}  // namespace tenon::host
