#include "python/tensors/view_layout.h"

#include <cstring>

#include "core/ops/catalog.h"

namespace tenon::python {
namespace {

using ir::Dim;

/// Loop indices stand among the symbols, past those of any graph.
constexpr std::size_t kFirstLoop = std::size_t{1} << 30;

Dim loop_symbol(std::size_t loop) { return Dim::symbol(SymbolId(kFirstLoop + loop)); }

/// The registers of an index program as expressions; nothing for what is no integer arithmetic.
std::vector<std::optional<Dim>> evaluate(const ops::ScalarProgram& program) {
  std::vector<std::optional<Dim>> registers;
  for (const ops::Instruction& at : program.instructions) {
    const auto arg = [&](std::size_t i) -> const std::optional<Dim>& { return registers[at.args[i]]; };
    std::optional<Dim> value;
    switch (at.op) {
      case ops::Primitive::constant:
        if (at.dtype == DType::i64) value = Dim(static_cast<std::int64_t>(at.payload));
        break;
      case ops::Primitive::extent: value = program.dims[at.payload]; break;
      case ops::Primitive::loop_index: value = loop_symbol(at.payload); break;
      case ops::Primitive::add:
        if (arg(0) && arg(1)) value = *arg(0) + *arg(1);
        break;
      case ops::Primitive::sub:
        if (arg(0) && arg(1)) value = *arg(0) - *arg(1);
        break;
      case ops::Primitive::mul:
        if (arg(0) && arg(1)) value = *arg(0) * *arg(1);
        break;
      case ops::Primitive::neg:
        if (arg(0)) value = -*arg(0);
        break;
      default: break;
    }
    registers.push_back(std::move(value));
  }
  return registers;
}

bool has_loops(const Dim& dim) {
  bool found = false;
  dim.for_each_symbol([&](SymbolId s) { found = found || s.value >= kFirstLoop; });
  return found;
}

Dim at_loop(const Dim& dim, std::optional<std::size_t> one) {
  return dim.substitute([&](SymbolId s) { return s.value < kFirstLoop ? Dim::symbol(s) : Dim(one && s.value == kFirstLoop + *one ? 1 : 0); });
}

/// How one node moves the elements of a tensor with these strides.
std::optional<ViewLayout> moved(const ir::Graph& graph, ir::NodeId node, const ir::Shape& strides) {
  const auto loop = ops::loop_of(graph, node);
  if (!loop || loop->reducer || loop->element.results.size() != 1) return std::nullopt;
  const ops::Instruction& load = loop->element.instructions[loop->element.results.front()];
  if (load.op != ops::Primitive::load || load.masked || load.payload != 0 || load.index_count != strides.size()) return std::nullopt;
  const auto registers = evaluate(loop->element);
  Dim linear = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    const auto& index = registers[loop->element.indices[load.first_index + d]];
    if (!index) return std::nullopt;
    linear = linear + *index * strides[d];
  }
  ViewLayout layout{{}, at_loop(linear, {})};
  Dim rest = linear - layout.offset;
  for (std::size_t l = 0; l < loop->extents.size(); ++l) {
    layout.strides.push_back(at_loop(linear, l) - layout.offset);
    rest = rest - layout.strides.back() * loop_symbol(l);
  }
  return has_loops(rest) || !(rest == Dim(0)) ? std::nullopt : std::optional(std::move(layout));
}

}  // namespace

std::optional<ViewLayout> layout_of_view(const ir::Graph& graph, ir::ValueId base, const ir::Shape& base_strides, ir::ValueId value) {
  if (value == base) return ViewLayout{base_strides, 0};
  const ir::Value& made = graph.value(value);
  if (made.kind != ir::ValueKind::result || graph.node(made.node).operands.empty()) return std::nullopt;
  const ir::ValueId from = graph.node(made.node).operands.front();
  const auto before = layout_of_view(graph, base, base_strides, from);
  if (!before) return std::nullopt;
  if (auto layout = moved(graph, made.node, before->strides)) {
    layout->offset = layout->offset + before->offset;
    return layout;
  }
  // Another shape over memory without gaps has no gaps either.
  if (graph.node(made.node).op == "reshape" && before->strides == ir::row_major_strides(graph.type(from).shape))
    return ViewLayout{ir::row_major_strides(graph.type(value).shape), before->offset};
  return std::nullopt;
}

}  // namespace tenon::python
