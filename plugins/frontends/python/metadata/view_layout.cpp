#include "python/metadata/view_layout.h"

#include <algorithm>
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

/// How one result of a node moves the elements of a tensor with these strides.
std::optional<ViewLayout> moved(const ir::Graph& graph, ir::NodeId node, std::uint32_t result, const ir::Shape& strides) {
  if (graph.node(node).op == "unbind") {
    const ir::Attribute* attribute = graph.node(node).attribute("dim");
    const std::int64_t dim = attribute ? std::get<Dim>(*attribute).constant() : 0;
    const auto at = static_cast<std::ptrdiff_t>(dim < 0 ? dim + static_cast<std::int64_t>(strides.size()) : dim);
    ViewLayout layout{strides, strides[static_cast<std::size_t>(at)] * Dim(static_cast<std::int64_t>(result))};
    layout.strides.erase(layout.strides.begin() + at);
    return layout;
  }
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

bool is_one(const Dim& dim) { return dim == Dim(1); }

/// The strides under another shape that differs in dimensions of size 1 alone; those get the step past the dimensions further in.
std::optional<ir::Shape> with_other_ones(const ir::Shape& from, const ir::Shape& strides, const ir::Shape& to) {
  ir::Shape kept, steps, all(to.size());
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (is_one(from[d])) continue;
    kept.push_back(from[d]);
    steps.push_back(strides[d]);
  }
  std::size_t left = kept.size();
  for (std::size_t d = to.size(); d-- > 0;) {
    if (is_one(to[d])) {
      all[d] = d + 1 == to.size() ? Dim(1) : to[d + 1] * all[d + 1];
      continue;
    }
    if (left == 0 || !(kept[left - 1] == to[d])) return std::nullopt;
    all[d] = steps[--left];
  }
  return left == 0 ? std::optional(std::move(all)) : std::nullopt;
}

}  // namespace

std::optional<ViewLayout> layout_of_view(const ir::Graph& graph, ir::ValueId base, const ir::Shape& base_strides, ir::ValueId value) {
  if (value == base) return ViewLayout{base_strides, 0};
  const ir::Value& made = graph.value(value);
  if (made.kind != ir::ValueKind::result || graph.node(made.node).operands.empty()) return std::nullopt;
  const ir::ValueId from = graph.node(made.node).operands.front();
  const auto before = layout_of_view(graph, base, base_strides, from);
  if (!before) return std::nullopt;
  if (auto layout = moved(graph, made.node, made.index, before->strides)) {
    layout->offset = layout->offset + before->offset;
    return layout;
  }
  // Another shape over memory without gaps has no gaps either.
  if (graph.node(made.node).op != "reshape") return std::nullopt;
  const ir::Shape &shape = graph.type(from).shape, &other = graph.type(value).shape;
  if (before->strides == ir::row_major_strides(shape)) return ViewLayout{ir::row_major_strides(other), before->offset};
  if (auto strides = with_other_ones(shape, before->strides, other)) return ViewLayout{*std::move(strides), before->offset};
  return std::nullopt;
}

void settle_unit_strides(ViewLayout& layout, const ir::Shape& shape, std::span<const std::int64_t> found, std::span<const std::int64_t> present) {
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (!is_one(shape[d]) || found[d] == present[d]) continue;
    const bool last = d + 1 == shape.size();
    const auto is_present = [&](const Dim& stride) { return stride == Dim(present[d]); };
    if (last ? present[d] == 1 : std::ranges::any_of(layout.strides, is_present)) layout.strides[d] = present[d];
    else if (!last) layout.strides[d] = shape[d + 1] * layout.strides[d + 1];
  }
}

}  // namespace tenon::python
