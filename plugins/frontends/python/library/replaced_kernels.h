// Kernels of torch's own operators that Python code has replaced (torch.library).
#pragma once

namespace tenon::python {

struct TorchLibrary;

/// Whether an operator of `aten` on the CPU computes, or is differentiated, by a function that Python registered: what the catalogue knows
/// of it need not hold. About 1 ns while nothing is registered or taken back. The GIL must be held.
bool kernels_are_replaced(const TorchLibrary& torch) noexcept;

}  // namespace tenon::python
