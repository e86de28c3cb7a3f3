// What a running artefact may ask of the host: memory for outputs whose size depends on data, and handing over tensors.
#pragma once

#include "core/abi/plugin.h"

namespace tenon::host {

struct StepCall;

/// The functions for one step of one run. What the backend does wrong is noted in the state; the run looks there afterwards.
TenonCall tensor_call(StepCall& state);

}  // namespace tenon::host
