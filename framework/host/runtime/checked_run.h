// Running a backend's group on memory that shows what it touches (plugins.check).
#pragma once

#include <cstdint>
#include <string>

#include "host/runtime/run_context.h"

namespace tenon::host {

/// Runs the artefact of a step on copies of its inputs, and on outputs and a workspace with marks in and around them; what it computes
/// then goes where the step's own outputs are. Gives the backend's code. What it wrote without being allowed to, or did not write, is
/// told in `defect`; the step's outputs are as they were then. Runs the group again where one run cannot tell an output that was left
/// out from one that has the value of the mark.
std::int32_t run_checked(RunContext& context, std::uint32_t step, std::string& defect);

}  // namespace tenon::host
