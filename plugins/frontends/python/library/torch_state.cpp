#include "python/library/torch_state.h"

#include "python/library/replaced_kernels.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_library.h"
#include "python/objects/ref.h"

namespace tenon::python {
namespace {

// The words of a thread under inference_mode: ADInplaceOrView and autograd keys excluded.
constexpr std::uint64_t kInferenceIncluded = 0x400000000;
constexpr std::uint64_t kInferenceExcluded = 0x3800000000;
constexpr std::size_t kAutogradByte = 24;  // in c10::AutogradState
constexpr std::uint8_t kAutogradMask = 7;

/// Where the calling thread keeps its state: looked up once a thread.
struct ThreadPointers {
  std::uint64_t* dispatch_keys = nullptr;
  char* autograd = nullptr;
  char* function_modes = nullptr;
};
thread_local ThreadPointers t_pointers;

bool look_up(const TorchLibrary& torch) noexcept {
  if (!torch.dispatch_keys_of_thread || !torch.autograd_state || !torch.function_mode_state) return false;
  t_pointers.dispatch_keys = static_cast<std::uint64_t*>(torch.dispatch_keys_of_thread());
  t_pointers.autograd = torch.autograd_state();
  t_pointers.function_modes = torch.function_mode_state();
  return t_pointers.dispatch_keys && t_pointers.autograd && t_pointers.function_modes;
}

/// Asks through Python where torch does not export its state: slower, and sees the modes that Python can see.
std::optional<TorchState> state_through_python(const TorchLibrary& torch) {
  TorchState state;
  auto ask = [&](const char* name) {
    Ref answer = Ref::steal(PyObject_CallMethod(torch.module.get(), name, nullptr));
    if (!answer) PyErr_Clear();
    return answer.is(Py_True);
  };
  if (ask("is_grad_enabled")) state.autograd |= 1;
  if (ask("is_inference_mode_enabled")) state.autograd |= 2;
  state.anomaly = ask("is_anomaly_enabled");
  if (ask("is_autocast_cpu_enabled") || kernels_are_replaced(torch)) return std::nullopt;
  return state;
}

}  // namespace

std::optional<TorchState> torch_state() noexcept {
  const TorchLibrary* torch = known_torch_library();
  if (!torch) return TorchState{};
  if (!t_pointers.dispatch_keys && !look_up(*torch)) return state_through_python(*torch);
  char* modes = t_pointers.function_modes;  // {disabled, skip} bytes, then the vector of active modes
  const bool function_mode = modes[0] != 0 || layout::field<void*>(modes, 8) != layout::field<void*>(modes, 16);
  if (function_mode || kernels_are_replaced(*torch)) return std::nullopt;
  TorchState state;
  state.included = t_pointers.dispatch_keys[0];
  state.excluded = t_pointers.dispatch_keys[1];
  state.autograd = static_cast<std::uint8_t>(t_pointers.autograd[kAutogradByte]) & kAutogradMask;
  state.default_dtype = torch->default_dtype ? torch->default_dtype() : 0;
  state.autocast_dtype = torch->autocast_dtype ? torch->autocast_dtype(0) : 0;
  state.autocast_dtype_of_cuda = TorchState::autocast_of_cuda ? torch->autocast_dtype(1) : 0;
  state.deterministic = torch->context && torch->deterministic && torch->deterministic(torch->context);
  state.anomaly = torch->is_anomaly_mode_on();
  return state;
}

std::string refusal(const std::optional<TorchState>& state) {
  const TorchLibrary* torch = known_torch_library();
  if (!state && torch && kernels_are_replaced(*torch)) return "torch.library has replaced a kernel of torch";
  if (!state) return "a torch function mode is active (torch.device as a context, set_default_device, or a TorchFunctionMode)";
  const std::uint64_t excluded = state->excluded & ~(TorchState::autocast_of_cpu | TorchState::autocast_of_cuda);
  const bool plain = state->included == 0 && excluded == 0;
  const bool inference = state->included == kInferenceIncluded && excluded == kInferenceExcluded;
  if (state->autocast() && !(torch && torch->autocast_dtype && torch->set_autocast)) return "autocast is on";
  if (plain || inference) return {};
  return "a torch dispatch mode or function transform is active";
}

}  // namespace tenon::python
