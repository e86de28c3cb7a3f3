// What the program has told torch's own compiler (torch._dynamo.config, torch.compiler.set_stance), which holds for captures here too.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace tenon::python {

struct ToldToTorch {
  std::optional<bool> dynamic;
  std::optional<std::size_t> recompile_limit;    // variants at a place
  std::optional<std::size_t> accumulated_limit;  // recompiles of a function, at all places of it
  bool runs_plainly = false;                     // captures nothing
  bool recompiles_plainly = false;               // captures nothing where something was captured before
  std::string no_recompiles;                     // who says that a recompile is an error; empty where nobody does
};

/// Reads it by the package's `tenon._torch_compile.told`, where the program has imported torch._dynamo; else nothing is told. Asked when something is to be
/// captured, never by a call that finds its code. A failure to read counts as nothing told.
ToldToTorch told_to_torch();

/// What torch says to calls, those of compiled code too.
struct SaidToCalls {
  bool runs_plainly = false;  // torch.compiler.set_stance has said "force_eager"
  bool is_profiled = false;   // a profiler of torch's is active
};

/// Asked by every call: three loads, where Python counts the changes of dicts. Needs the GIL.
SaidToCalls said_to_calls() noexcept;

}  // namespace tenon::python
