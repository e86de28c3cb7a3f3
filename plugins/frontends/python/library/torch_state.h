// torch's global state of the calling thread, as far as it changes what a captured program would do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::python {

/// A snapshot that is compared on every call. All zero without torch.
struct TorchState {
  std::uint64_t included = 0, excluded = 0;  // thread-local dispatch keys: autocast, modes, vmap, inference mode
  std::uint8_t autograd = 0;                 // bit 0 grad mode, bit 1 inference mode, bit 2 forward-mode AD
  std::int8_t default_dtype = 0;
  std::int8_t autocast_dtype = 0;            // of the CPU, whether autocast is on or not
  std::int8_t autocast_dtype_of_cuda = 0;    // likewise
  bool deterministic = false;                // torch.use_deterministic_algorithms
  bool anomaly = false;                      // torch.autograd.detect_anomaly
  friend bool operator==(const TorchState&, const TorchState&) = default;

  bool grad_enabled() const { return (autograd & 1) != 0; }
  bool inference() const { return (autograd & 2) != 0; }
  /// The devices whose tensors autocast may cast here.
  enum class Autocast : std::uint8_t { cpu, cuda };
  bool autocast(Autocast of) const { return (excluded & (of == Autocast::cpu ? autocast_of_cpu : autocast_of_cuda)) != 0; }
  bool autocast() const { return autocast(Autocast::cpu) || autocast(Autocast::cuda); }

  // A bit is set where autocast is on: torch keeps the difference to the default.
  // Which bit it is differs between torch's versions: found when torch is, 0 where it cannot be.
  static inline std::uint64_t autocast_of_cpu = 0, autocast_of_cuda = 0;
};

/// The calling thread's state; nothing while a `__torch_function__` mode or a dispatch mode is active, or kernels are replaced, in which case
/// Python code may run on every torch call and nothing compiled may stand in for it. About 3 ns.
std::optional<TorchState> torch_state() noexcept;

/// Why `torch_state` gave nothing or why a capture under `state` is refused; empty when it may go ahead.
std::string refusal(const std::optional<TorchState>& state);

}  // namespace tenon::python
