// What kernels of ours draw, taken from torch's generator of a card by its own methods: no function of Python's is called on the way.
#pragma once

#include <memory>

#include "python/opaque/opaque_call.h"
#include "tenon/backend.h"

namespace tenon::python {

/// Null where the call is another one.
std::unique_ptr<Artefact> make_generator_artefact(const GraphView& graph, NodeView node, std::shared_ptr<OpaqueCall> call);

}  // namespace tenon::python
