#include "test_graph.h"

#include <cstring>

#include "core/abi/dlpack_types.h"
#include "core/ir/buffer.h"
#include "placed_graph.h"

namespace tenon::conformance {
namespace {

// What a constant's tensor states as its byte offset; a multiple of every element size.
constexpr std::size_t kConstantOffset = 48;

}  // namespace

TestGraph::TestGraph(const DeviceUnderTest& device, ir::Graph graph)
    : device_(device), graph_(placed_on(std::move(graph), device.in_graphs())), buffer_(ir::write_buffer(graph_)) {
  for (const ir::Constant& constant : graph_.constants()) add_constant(constant);
  for (const ConstantTensor& constant : constants_) constant_pointers_.push_back(&constant.tensor);
}

TenonGraph TestGraph::crossing() const {
  return {sizeof(TenonGraph), ir::bytes_of(buffer_), constant_pointers_.data(), constant_pointers_.size()};
}

void TestGraph::add_constant(const ir::Constant& constant) {
  std::vector<std::int64_t> shape;
  for (const ir::Dim& size : constant.type.shape) shape.push_back(size.constant());
  const auto bytes = static_cast<std::size_t>(constant.type.element_count().constant()) * size_of(constant.type.dtype);
  ConstantTensor& held = constants_.emplace_back(ConstantTensor{TestMemory(&device_, bytes + kConstantOffset), std::move(shape), {}});
  held.memory.fill(std::byte{0x3b});
  if (bytes && constant.data) std::memcpy(held.memory.data() + kConstantOffset, constant.data, bytes);
  held.memory.send();
  held.tensor.data = constant.data ? held.memory.address() : nullptr;
  held.tensor.device = device_.id();
  held.tensor.ndim = static_cast<std::int32_t>(held.shape.size());
  held.tensor.dtype = dlpack_type(constant.type.dtype);
  held.tensor.shape = held.shape.data();
  held.tensor.byte_offset = constant.data ? kConstantOffset : 0;
}

std::vector<std::int64_t> TestGraph::bind(const std::vector<std::vector<std::int64_t>>& input_shapes) const {
  std::vector<std::int64_t> symbols(graph_.symbols().size(), kUnbound);
  for (std::size_t i = 0; i < input_shapes.size(); ++i) {
    const ir::Shape& shape = graph_.type(graph_.inputs()[i]).shape;
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (const SymbolId symbol = shape[d].as_symbol()) symbols[symbol.value] = input_shapes[i][d];
  }
  return symbols;
}

std::optional<std::vector<std::int64_t>> sizes_of(const ir::Type& type, const std::vector<std::int64_t>& symbols) {
  std::vector<std::int64_t> sizes;
  for (const ir::Dim& size : type.shape) {
    bool is_bound = true;
    size.for_each_symbol([&](SymbolId symbol) { is_bound &= symbols[symbol.value] != TestGraph::kUnbound; });
    if (!is_bound) return {};
    sizes.push_back(size.evaluate(symbols));
  }
  return sizes;
}

}  // namespace tenon::conformance
