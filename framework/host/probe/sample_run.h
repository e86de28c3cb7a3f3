// The life of one artefact: compiled, run on memory that shows misuse, stored, loaded, given back.
#pragma once

#include <functional>

#include "core/ops/reference/sample.h"
#include "steps.h"

namespace tenon::probe {

/// The first sample of each op of the catalogue that takes and gives row-major tensors of known sizes, until `use` gives false.
void for_each_runnable_sample(const std::function<bool(const ops::Sample&, const ir::Graph&)>& use);

/// Lives through all that the backend does with the graph, which it has claimed whole. A step that fails ends it. Inputs cannot be
/// written, and behind each tensor the memory ends.
void live(Backend& backend, const ops::Sample& sample, const ir::Graph& graph);

}  // namespace tenon::probe
