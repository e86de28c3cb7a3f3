#include "python/graph/graph_constants.h"

#include "core/abi/dlpack_types.h"

namespace tenon::python {

GraphConstants::GraphConstants(const ir::Graph& graph) {
  const std::size_t count = graph.constants().size();
  shapes.resize(count);
  tensors.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ir::Constant& constant = graph.constants()[i];
    for (const ir::Dim& dim : constant.type.shape) shapes[i].push_back(dim.constant());
    owners.push_back(constant.owner);
    tensors[i] = {const_cast<void*>(constant.data), ir::dlpack_device(constant.type.device), static_cast<std::int32_t>(shapes[i].size()), dlpack_type(constant.type.dtype), shapes[i].data(), nullptr, 0};
    pointers.push_back(&tensors[i]);
  }
}

}  // namespace tenon::python
