// NumPy's handling of floating-point errors in the calling context.
#pragma once

#include <string>

namespace tenon::python {

/// Whether compiled code may stand in for NumPy: floating-point errors neither raise nor call or log anything (np.errstate). 20 ns.
/// Warnings (NumPy's default) are not issued by compiled code.
bool numpy_errors_are_quiet() noexcept;

/// Why not, for messages.
inline const char* const kLoudErrors = "np.errstate makes floating-point errors raise, call or log";

}  // namespace tenon::python
