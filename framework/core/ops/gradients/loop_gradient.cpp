// Gradients of loop nests and scatters. The element of a nest is a program of loads at computed indices: its derivative by each load is a
// program too, and what a load is handed is added up at the index it loaded from.
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/gradients/gradient.h"
#include "core/ops/gradients/preimages.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using ir::ValueId;

/// True for the program (a, b) -> a + b.
bool adds(const ScalarProgram& p) {
  const Instruction& last = p.instructions[p.results[0]];
  return p.results.size() == 1 && last.op == Primitive::add && p.instructions[last.args[0]].op == Primitive::parameter &&
         p.instructions[last.args[1]].op == Primitive::parameter;
}

/// True for the program (old, value) -> value.
bool overwrites(const ScalarProgram& p) {
  const Instruction& last = p.instructions[p.results[0]];
  return last.op == Primitive::parameter && last.payload == 1;
}

/// A program over loop indices and loads, computed for all points of its loops at once.
class ElementProgram {
 public:
  ElementProgram(NodeBuilder& b, std::span<const ValueId> operands, const ScalarProgram& program, Shape extents)
      : b_(b), operands_(operands.begin(), operands.end()), program_(program), extents_(std::move(extents)), loaded_(program.instructions.size()) {
    registers_ = expand_registers(b_, program_, Shape(extents_.size(), Dim(1)), [this](const Instruction& i, std::span<const ValueId> before) { return leaf(i, before); });
  }

  /// A register as a tensor.
  ValueId value(std::uint32_t reg) { return tensor(registers_[reg], program_.instructions[reg].dtype); }

  /// Adds to the gradients of the operands what `adjoint`, the gradient of the register `result`, hands to its loads.
  void propagate(std::uint32_t result, ValueId adjoint, OperandGradients& gradients) {
    std::vector<std::size_t> loads;
    ScalarProgram leaves = with_leaves_as_parameters(result, loads);
    if (loads.empty()) return;
    std::vector<ValueId> parameters(registers_.begin(), registers_.end());
    for (std::size_t r = 0; r < loaded_.size(); ++r)
      if (loaded_[r] && !is_one_leaf(program_.instructions[r])) parameters[r] = *loaded_[r];
    std::size_t first_adjoint = 0;
    for (const Instruction& i : leaves.instructions)
      if (i.op == Primitive::parameter) first_adjoint = std::max<std::size_t>(first_adjoint, i.payload + 1);
    parameters.resize(first_adjoint);
    parameters.push_back(adjoint);
    const auto handed = expand_program(b_, gradient(leaves, loads), parameters, extents_);
    for (std::size_t k = 0; k < loads.size(); ++k) {
      const Instruction& load = program_.instructions[loads[k]];
      std::optional<ValueId>& sum = gradients[load.payload];
      sum = with_returned(sum, load, handed[k]);
    }
  }

 private:
  ir::Type type(ValueId v) const { return b_.graph().type(v); }
  bool is_literal(ValueId v) const { return b_.graph().value(v).kind == ir::ValueKind::literal; }

  ValueId tensor(ValueId v, DType dtype) {
    return is_literal(v) ? b_.one("full", {v}, {{"dtype", dtype}, {"size", Shape(extents_.size(), Dim(1))}}) : v;
  }

  ValueId leaf(const Instruction& i, std::span<const ValueId> before) {
    if (i.op == Primitive::load) return load(i, before);
    const ValueId count = b_.one("arange", {}, {{"dtype", DType::i64}, {"end", extents_[i.payload]}, {"start", Dim(0)}, {"step", Dim(1)}});
    Shape shape(extents_.size(), Dim(1));
    shape[i.payload] = extents_[i.payload];
    return b_.one("reshape", {count}, {{"shape", shape}});
  }

  ValueId load(const Instruction& i, std::span<const ValueId> before) {
    const ValueId operand = operands_[i.payload];
    if (i.masked && is_empty(type(operand).shape)) return nothing_loaded(i, before);
    if (const auto loops = loops_of(i)) {
      loaded_[before.size()] = b_.cast(at_loops(operand, *loops), i.dtype);
      return *loaded_[before.size()];
    }
    const auto indices = indices_of(i, before);
    ValueId loaded = indices.empty() ? b_.one("reshape", {operand}, {{"shape", Shape(extents_.size(), Dim(1))}}) : indexed(operand, indices);
    loaded = b_.cast(loaded, i.dtype);
    loaded_[before.size()] = loaded;
    if (!i.masked) return loaded;
    return b_.one("where", {tensor(before[i.args[0]], DType::b8), loaded, before[i.args[1]]});
  }

  static bool is_empty(const Shape& shape) { return std::ranges::find(shape, Dim(0)) != shape.end(); }

  /// There is no element that a mask could let through.
  ValueId nothing_loaded(const Instruction& i, std::span<const ValueId> before) {
    const ValueId value = tensor(before[i.args[1]], i.dtype);
    loaded_[before.size()] = value;
    return value;
  }

  /// The index of a load in each dimension; 0 where its mask is false and it may be out of range.
  std::vector<ValueId> indices_of(const Instruction& i, std::span<const ValueId> registers) {
    std::vector<ValueId> indices;
    for (std::uint32_t k = 0; k < i.index_count; ++k) {
      const std::uint32_t place = program_.indices[i.first_index + k];
      ValueId index = tensor(registers[place], DType::i64);
      if (i.masked && !runs_over(program_.instructions[place], type(operands_[i.payload]).shape[k])) index = b_.one("where", {tensor(registers[i.args[0]], DType::b8), index, b_.literal(Dim(0))});
      indices.push_back(index);
    }
    return indices;
  }

  ValueId indexed(ValueId from, const std::vector<ValueId>& indices) {
    std::vector<ValueId> operands{from};
    operands.insert(operands.end(), indices.begin(), indices.end());
    return b_.one("index", std::move(operands), {{"dims", all_dims(indices.size())}});
  }

  static std::vector<Dim> all_dims(std::size_t rank) {
    std::vector<Dim> dims;
    for (std::size_t d = 0; d < rank; ++d) dims.emplace_back(static_cast<std::int64_t>(d));
    return dims;
  }

  /// Whether a masked load and its choice are one leaf: nothing is handed to what is chosen where the mask is false.
  bool is_one_leaf(const Instruction& i) const { return i.op == Primitive::load && i.masked && program_.instructions[i.args[1]].op == Primitive::constant; }

  /// The program up to `result` with a parameter for every loop index and load, numbered by its register; masks become choices.
  /// `loads`: those of floats.
  ScalarProgram with_leaves_as_parameters(std::uint32_t result, std::vector<std::size_t>& loads) {
    ScalarProgram p;
    p.dims = program_.dims;
    std::vector<std::uint32_t> moved;
    for (std::uint32_t r = 0; r <= result; ++r) {
      Instruction i = program_.instructions[r];
      const Instruction original = i;
      if (i.op == Primitive::load || i.op == Primitive::loop_index) i = {.op = Primitive::parameter, .dtype = i.dtype, .payload = r};
      else
        for (std::uint32_t& a : i.args) a = moved.empty() ? 0 : moved[std::min<std::size_t>(a, moved.size() - 1)];
      p.instructions.push_back(i);
      if (original.op == Primitive::load && is_float(original.dtype)) loads.push_back(r);
      if (original.op == Primitive::load && original.masked && !is_one_leaf(original)) {
        const auto loaded = static_cast<std::uint32_t>(p.instructions.size() - 1);
        p.instructions.push_back({.op = Primitive::select, .dtype = original.dtype, .args = {moved[original.args[0]], loaded, moved[original.args[1]]}});
      }
      moved.push_back(static_cast<std::uint32_t>(p.instructions.size() - 1));
    }
    p.results = {moved[result]};
    return p;
  }

  /// The gradient of a load's operand with what the operand gets from what the load was handed at each point.
  ValueId with_returned(std::optional<ValueId> sum, const Instruction& load, ValueId handed) {
    const ir::Type operand = type(operands_[load.payload]);
    const auto and_sum = [&](ValueId part) { return sum ? b_.one("add", {*sum, part}) : part; };
    const auto zeros = [&] { return b_.full(0.0, operand.dtype, operand.shape); };
    if (is_empty(operand.shape)) return sum ? *sum : zeros();
    if (const auto order = loops_of(load)) return and_sum(b_.cast(in_order(handed, *order), operand.dtype));
    if (const auto dimensions = dimensions_of(load, operand)) return and_sum(b_.cast(summed(handed, *dimensions), operand.dtype));
    if (is_one_leaf(load)) handed = b_.one("where", {tensor(registers_[load.args[0]], DType::b8), handed, b_.literal(0.0)});
    const auto indices = indices_of(load, registers_);
    if (const auto chosen = chosen_dimension(load, operand)) return and_sum(b_.cast(at_chosen(handed, *chosen, indices[chosen->dim], operand), operand.dtype));
    Shape spanned(extents_.size(), Dim(1));
    for (std::size_t d = 0; d < spanned.size(); ++d)
      for (ValueId index : indices)
        if (type(index).shape[d] == extents_[d]) spanned[d] = extents_[d];
    const ValueId values = b_.cast(sum_to_shape(b_, spread(handed), spanned), operand.dtype);
    if (indices.empty()) return and_sum(b_.one("reshape", {values}, {{"shape", operand.shape}}));
    std::vector<ValueId> operands{sum ? *sum : zeros(), values};
    operands.insert(operands.end(), indices.begin(), indices.end());
    return b_.one("index_put", std::move(operands), {{"accumulate", true}, {"dims", all_dims(indices.size())}});
  }

  /// Whether an index is a loop over all of a dimension.
  bool runs_over(const Instruction& index, const Dim& size) const { return index.op == Primitive::loop_index && extents_[index.payload] == size; }

  /// The loop that is the index of each dimension, where a load's indices are loops, each at most once, that run over all of a dimension.
  std::optional<std::vector<std::size_t>> loops_of(const Instruction& load) {
    std::vector<std::size_t> loops;
    if (load.masked || load.index_count == 0) return {};
    for (std::uint32_t k = 0; k < load.index_count; ++k) {
      const Instruction& index = program_.instructions[program_.indices[load.first_index + k]];
      if (!runs_over(index, type(operands_[load.payload]).shape[k]) || std::ranges::find(loops, index.payload) != loops.end()) return {};
      loops.push_back(index.payload);
    }
    return loops;
  }

  /// A load of one element of each row along a dimension, whose others are loops over all of them.
  struct ChosenDimension {
    std::size_t dim = 0;
    std::vector<std::size_t> loops;  // of the other dimensions
  };

  /// What elements are handed needs no scatter on a card then, where the order of one is dear.
  std::optional<ChosenDimension> chosen_dimension(const Instruction& load, const ir::Type& operand) const {
    if (b_.device().is_host() || load.index_count != operand.rank()) return {};
    ChosenDimension chosen{.dim = operand.rank(), .loops = {}};
    for (std::uint32_t k = 0; k < load.index_count; ++k) {
      const Instruction& index = program_.instructions[program_.indices[load.first_index + k]];
      const bool is_loop = runs_over(index, operand.shape[k]) && std::ranges::find(chosen.loops, index.payload) == chosen.loops.end();
      if (!is_loop && std::exchange(chosen.dim, k) != operand.rank()) return {};
      if (is_loop) chosen.loops.push_back(index.payload);
    }
    for (std::size_t l = 0; l < extents_.size(); ++l)
      if (std::ranges::find(chosen.loops, l) == chosen.loops.end() && !(extents_[l] == Dim(1))) return {};
    return chosen.dim < operand.rank() ? std::optional(chosen) : std::nullopt;
  }

  /// What was handed to the element of each row that was loaded, and zeros beside it.
  ValueId at_chosen(ValueId handed, const ChosenDimension& chosen, ValueId index, const ir::Type& operand) {
    Shape row = operand.shape, places(operand.rank(), Dim(1));
    row[chosen.dim] = Dim(1), places[chosen.dim] = operand.shape[chosen.dim];
    const auto of_rows = [&](ValueId v) { return b_.one("reshape", {in_order(v, chosen.loops)}, {{"shape", row}}); };
    const ValueId count = b_.one("arange", {}, {{"dtype", DType::i64}, {"end", places[chosen.dim]}, {"start", Dim(0)}, {"step", Dim(1)}});
    return b_.one("where", {b_.one("eq", {b_.one("reshape", {count}, {{"shape", places}}), of_rows(index)}), of_rows(handed), b_.literal(0.0)});
  }

  static std::vector<Dim> dims_of(const std::vector<std::size_t>& numbers) {
    std::vector<Dim> dims;
    for (std::size_t n : numbers) dims.emplace_back(static_cast<std::int64_t>(n));
    return dims;
  }

  /// The operand with its dimensions where the loops are that index them.
  ValueId at_loops(ValueId operand, const std::vector<std::size_t>& loops) {
    std::vector<std::size_t> order(loops.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::size_t k) { return loops[k]; });
    Shape shape(extents_.size(), Dim(1));
    for (std::size_t l : loops) shape[l] = extents_[l];
    if (!std::ranges::is_sorted(order)) operand = b_.one("permute", {operand}, {{"dims", dims_of(order)}});
    return type(operand).shape == shape ? operand : b_.one("reshape", {operand}, {{"shape", shape}});
  }

  /// The sum over all other loops, with these as its dimensions.
  ValueId in_order(ValueId handed, const std::vector<std::size_t>& loops) {
    Shape kept(extents_.size(), Dim(1)), shape;
    std::vector<std::size_t> order = loops;
    for (std::size_t l : loops) shape.push_back(kept[l] = extents_[l]);
    for (std::size_t l = 0; l < extents_.size(); ++l)
      if (std::ranges::find(loops, l) == loops.end()) order.push_back(l);
    ValueId summed = sum_to_shape(b_, spread(handed), kept);
    if (!std::ranges::is_sorted(order)) summed = b_.one("permute", {summed}, {{"dims", dims_of(order)}});
    return type(summed).shape == shape ? summed : b_.one("reshape", {summed}, {{"shape", shape}});
  }

  /// Indices that are sums over few loops are tables; a card's would be copied to it at every call.
  std::optional<std::vector<LoadedDimension>> dimensions_of(const Instruction& load, const ir::Type& operand) const {
    if (load.index_count == 0 || !b_.device().is_host()) return {};
    return loaded_dimensions(program_, load, extents_, operand.shape);
  }

  ValueId summed(ValueId handed, const std::vector<LoadedDimension>& dimensions) {
    std::vector<std::size_t> loops;
    for (const LoadedDimension& d : dimensions) loops.insert(loops.end(), d.loops.begin(), d.loops.end());
    ValueId sum = in_order(handed, loops);
    std::size_t first = loops.size();
    for (std::size_t d = dimensions.size(); d-- > 0;) {
      first -= dimensions[d].loops.size();
      if (dimensions[d].sum) sum = gathered_sum(b_, sum, first, *dimensions[d].sum);
    }
    return sum;
  }

  ValueId spread(ValueId v) { return type(v).shape == extents_ ? v : b_.one("expand", {v}, {{"size", extents_}}); }

  NodeBuilder& b_;
  const std::vector<ValueId> operands_;
  const ScalarProgram& program_;
  const Shape extents_;
  std::vector<ValueId> registers_;
  std::vector<std::optional<ValueId>> loaded_;  // by register: what was loaded, before a mask
};

/// Whether the results of a program need its parameter 0.
bool needs_first_parameter(const ScalarProgram& p) {
  std::vector<bool> needed(p.instructions.size(), false);
  for (std::uint32_t r : p.results) needed[r] = true;
  for (std::size_t r = needed.size(); r-- > 0;) {
    const Instruction& i = p.instructions[r];
    if (!needed[r] || i.op == Primitive::constant || i.op == Primitive::extent) continue;
    if (i.op == Primitive::parameter && i.payload == 0) return true;
    for (std::size_t k = 0; k < arity(i.op); ++k) needed[i.args[k]] = true;
  }
  return false;
}

/// The gradient of the sum of a reduction, of which the result is some function with a constant slope.
ValueId gradient_of_sum(NodeBuilder& b, const std::string& op, const Reducer& reducer, ValueId adjoint) {
  const std::size_t first = 0;
  const ScalarProgram slope = gradient(reducer.finish, std::span(&first, 1));
  if (reducer.accumulators.size() != 1 || !adds(reducer.combine) || needs_first_parameter(slope))
    throw Exception(error(Code::unsupported, "{} reduces in another way than by adding up", op));
  return expand_program(b, slope, std::array{adjoint, adjoint}, b.graph().type(adjoint).shape)[0];
}

/// The place that every point of a scatter writes, as indices over its loops; none of a tensor without dimensions.
struct ScatterPlaces {
  std::vector<ValueId> indices;
  std::vector<Dim> dims;

  ValueId put(NodeBuilder& b, ValueId base, ValueId values) const {
    std::vector<ValueId> operands{base, values};
    operands.insert(operands.end(), indices.begin(), indices.end());
    return b.one("index_put", std::move(operands), {{"accumulate", false}, {"dims", dims}});
  }

  ValueId read(NodeBuilder& b, ValueId from) const {
    std::vector<ValueId> operands{from};
    operands.insert(operands.end(), indices.begin(), indices.end());
    return b.one("index", std::move(operands), {{"dims", dims}});
  }
};

/// Of several writes to one place each gets the gradient of that place, as in torch: which of them lasts is nobody's promise.
OperandGradients scatter_gradients(NodeBuilder& b, const ir::Node& node, const ScatterBody& body, ValueId adjoint) {
  const bool overwriting = overwrites(body.combine);
  if (!adds(body.combine) && !overwriting) throw Exception(error(Code::unsupported, "{} combines in another way than by adding up", node.op));
  const ir::Type base = b.graph().type(adjoint);
  if (base.shape.empty()) throw Exception(error(Code::unsupported, "{} into a tensor without dimensions", node.op));
  OperandGradients gradients(node.operands.size());
  ElementProgram target(b, b.brought_here(node.operands), body.target, body.extents);
  ScatterPlaces places;
  for (std::size_t d = 0; d < base.shape.size(); ++d) {
    const ValueId index = target.value(body.target.results[d]);
    places.indices.push_back(d == 0 ? b.one("expand", {index}, {{"size", body.extents}}) : index);
    places.dims.emplace_back(static_cast<std::int64_t>(d));
  }
  const ValueId handed = b.cast(places.read(b, adjoint), compute_type(base.dtype));
  target.propagate(body.target.results.back(), handed, gradients);
  gradients[body.base] = overwriting ? places.put(b, adjoint, b.full(0.0, base.dtype, body.extents)) : adjoint;
  return gradients;
}

}  // namespace

OperandGradients loop_gradients(NodeBuilder& b, ir::NodeId id, ValueId result_gradient) {
  const ir::Node node = b.graph().node(id);
  const Op* op = find_op(node.op);
  TENON_CHECK(op && (op->loop || op->scatter), "{} is no loop nest", node.op);
  const DType result = b.graph().type(node.results[0]).dtype;
  if (op->scatter) return scatter_gradients(b, node, op->scatter(OpQuery(b.graph(), node.operands, node.attributes)), result_gradient);
  const LoopBody body = op->loop(OpQuery(b.graph(), node.operands, node.attributes));
  ValueId adjoint = b.cast(result_gradient, compute_type(result));
  if (body.reducer) adjoint = gradient_of_sum(b, node.op, *body.reducer, adjoint);
  Shape shape = b.graph().type(adjoint).shape;
  shape.resize(body.extents.size(), Dim(1));
  if (body.reduced) adjoint = b.one("reshape", {adjoint}, {{"shape", shape}});
  OperandGradients gradients(node.operands.size());
  ElementProgram(b, b.brought_here(node.operands), body.element, body.extents).propagate(body.element.results[0], adjoint, gradients);
  return gradients;
}

}  // namespace tenon::ops
