#include "fuzz/execute.h"

#include <algorithm>
#include <cstring>

#include "core/ops/infer.h"

namespace tenon::fuzz {
namespace {

constexpr std::int64_t kMostElements = 1 << 13;

std::size_t below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

/// Whether all sizes of a type, where its symbols have values, are such as a run takes little time for.
bool is_small(const ir::Type& type, const std::vector<std::int64_t>& symbols) {
  std::int64_t count = 1;
  for (const ir::Dim& d : type.shape) {
    bool known = true;
    d.for_each_symbol([&](SymbolId s) { known = known && symbols[s.value] >= 0; });
    const std::int64_t size = known ? d.evaluate(symbols) : 8;
    if (size < 0 || size > kMostElements || (count *= size) > kMostElements) return false;
  }
  return true;
}

bool is_small(const ir::Graph& graph, const std::vector<std::int64_t>& symbols) {
  for (ir::ValueId v : graph.inputs()) {
    if (!graph.type(v).is_tensor() || !is_small(graph.type(v), symbols)) return false;
    if (!graph.type(v).strides) continue;
    for (std::size_t d = 0; d < graph.type(v).rank(); ++d) {
      const std::int64_t stride = (*graph.type(v).strides)[d].evaluate(symbols);
      if (stride > kMostElements || stride < -kMostElements) return false;
    }
  }
  for (NodeId n : graph.nodes()) {
    for (ir::ValueId r : graph.node(n).results)
      if (graph.type(r).device != ir::Device() || !is_small(graph.type(r), symbols)) return false;
    for (RegionId region : graph.node(n).regions)
      if (!is_small(graph.region(region), symbols)) return false;
  }
  return true;
}

/// An element as data may have it: small numbers most often, so that indices are in range now and then.
void write_element(std::byte* to, DType dtype, Random& random) {
  const auto put = [&](auto value) { std::memcpy(to, &value, sizeof value); };
  const std::int64_t small = static_cast<std::int64_t>(below(random, 9)) - (below(random, 4) == 0 ? 4 : 0);
  const bool wild = below(random, 40) == 0;
  switch (dtype) {
    case DType::b8: return put(static_cast<std::uint8_t>(small & 1));
    case DType::u8:
    case DType::i8: return put(static_cast<std::int8_t>(wild ? random() : static_cast<std::uint64_t>(small)));
    case DType::i16: return put(static_cast<std::int16_t>(wild ? random() : static_cast<std::uint64_t>(small)));
    case DType::i32: return put(static_cast<std::int32_t>(wild ? random() : static_cast<std::uint64_t>(small)));
    case DType::i64: return put(static_cast<std::int64_t>(wild ? random() : static_cast<std::uint64_t>(small)));
    case DType::f16: return put(static_cast<std::uint16_t>(wild ? random() : 0x3c00 + (random() & 0x3ff)));
    case DType::bf16: return put(static_cast<std::uint16_t>(wild ? random() : 0x3f80 + (random() & 0x7f)));
    case DType::f32: return wild ? put(static_cast<std::uint32_t>(random())) : put(static_cast<float>(small) * 0.5f);
    case DType::f64: return wild ? put(random()) : put(static_cast<double>(small) * 0.5);
    default: std::memset(to, 0, size_of(dtype));
  }
}

}  // namespace

std::optional<std::vector<std::int64_t>> sizes_to_run(const ir::Graph& graph, const std::vector<ir::Dim>& not_negative, Random& random) {
  std::vector<std::int64_t> symbols(graph.symbols().size(), -1);
  std::vector<bool> late(symbols.size(), false);
  for (NodeId n : graph.nodes())
    if (graph.node(n).op == "nonzero")
      if (const SymbolId s = graph.type(graph.node(n).results[0]).shape[0].as_symbol(); s) late[s.value] = true;
  for (std::size_t s = 0; s < symbols.size(); ++s) {
    const ir::SymbolInfo& info = graph.symbols()[s];
    if (!late[s] && info.max >= 0) symbols[s] = std::clamp<std::int64_t>(static_cast<std::int64_t>(below(random, 6)), std::max<std::int64_t>(info.min, 0), info.max);
  }
  const auto unbound = [&](const ir::Dim& d) {
    bool any = false;
    d.for_each_symbol([&](SymbolId s) { any = any || symbols[s.value] < 0; });
    return any;
  };
  try {
    for (ir::ValueId input : graph.inputs()) {
      for (const ir::Dim& d : graph.type(input).shape)
        if (unbound(d)) return std::nullopt;
      if (graph.type(input).strides)
        for (const ir::Dim& d : *graph.type(input).strides)
          if (unbound(d)) return std::nullopt;
    }
    for (const ir::Dim& d : not_negative)
      if (!unbound(d) && d.evaluate(symbols) < 0) return std::nullopt;
    if (!is_small(graph, symbols)) return std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;  // sizes that overflow, or divide by zero
  }
  return symbols;
}

InputMemory input_of(const ir::Type& type, const std::vector<std::int64_t>& symbols, Random& random) {
  InputMemory input;
  input.dtype = type.dtype;
  for (const ir::Dim& d : type.shape) input.shape.push_back(d.evaluate(symbols));
  for (const ir::Dim& d : type.resolved_strides()) input.strides.push_back(d.evaluate(symbols));
  std::int64_t lowest = 0, highest = 0;
  bool empty = false;
  for (std::size_t d = 0; d < input.shape.size(); ++d) {
    empty = empty || input.shape[d] == 0;
    const std::int64_t reach = (input.shape[d] - 1) * input.strides[d];
    (reach < 0 ? lowest : highest) += reach;
  }
  const auto element = static_cast<std::int64_t>(size_of(type.dtype));
  if (empty) return input;
  input.bytes.resize(static_cast<std::size_t>((highest - lowest + 1) * element));
  input.first = static_cast<std::size_t>(-lowest * element);
  for (std::size_t at = 0; at < input.bytes.size(); at += static_cast<std::size_t>(element)) write_element(input.bytes.data() + at, type.dtype, random);
  return input;
}

std::string run_on_reference(const ir::Graph& graph, const std::vector<std::int64_t>& symbols, Random& random) {
  std::vector<InputMemory> memory;
  std::vector<ops::TensorView> views;
  for (ir::ValueId v : graph.inputs()) memory.push_back(input_of(graph.type(v), symbols, random));
  for (InputMemory& m : memory) views.push_back({m.bytes.data() + m.first, m.dtype, m.shape, m.strides});
  try {
    ops::evaluate(graph, views, below(random, 4) == 0 ? ops::Precision::judge : ops::Precision::native, symbols);
  } catch (const Exception& e) {
    return e.what();
  }
  return {};
}

}  // namespace tenon::fuzz
