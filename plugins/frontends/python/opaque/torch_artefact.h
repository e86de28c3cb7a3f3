// Nodes of the catalogue on torch's devices, run by torch: what no other backend takes there.
#pragma once

#include <memory>

#include "tenon/backend.h"

namespace tenon::python {

/// Claims, each by itself, the nodes on devices for which torch has a function; refuses the others that are no opaque calls.
void claim_torch_nodes(const GraphView& graph, Claims& claims);

/// A group that was claimed so.
std::unique_ptr<Artefact> make_torch_artefact(const GraphView& graph);

}  // namespace tenon::python
