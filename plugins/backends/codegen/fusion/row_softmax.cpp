#include "fusion/row_softmax.h"

#include <limits>

#include "fusion/tile.h"

namespace tenon::codegen {

using P = ops::Primitive;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Pattern {
 public:
  explicit Pattern(const Kernel& kernel) : kernel_(kernel) {}

  std::optional<RowSoftmax> find() const {
    RowSoftmax found;
    OpId stored = kernel_.stages.back().stores[0].value;
    const DType dtype = at(stored).dtype;
    const bool chooses = is(stored, P::select);
    const OpId hidden = at(stored).args[0];
    if (chooses && !is_number(at(at(stored).args[1]), 0)) return {};
    if (chooses) stored = at(stored).args[2];
    if (!is(stored, P::div) || !is(at(stored).args[0], P::exp)) return {};
    const OpId weight = at(stored).args[0], difference = at(weight).args[0];
    if (!is(difference, P::sub)) return {};
    found.score = at(difference).args[0];
    const auto largest = reduction(at(difference).args[1], P::maximum, found.score), sum = reduction(at(stored).args[1], P::add, weight);
    if (!largest || !sum || at(found.score).dtype != dtype || (dtype != DType::f32 && dtype != DType::f64)) return {};
    if (chooses && !says_hidden(hidden, found.score)) return {};
    if (reduction_dependents(kernel_.operations)[found.score]) return {};
    found.largest = *largest, found.sum = *sum, found.zeroes_hidden = chooses;
    return found;
  }

 private:
  const Operation& at(OpId id) const { return kernel_.operations[id]; }
  bool is(OpId id, P p) const { return at(id).kind == OperationKind::primitive && at(id).primitive == p; }

  /// The reduction that the operation is the result of, if it combines `element` alone in that way.
  std::optional<std::uint32_t> reduction(OpId id, P combines, OpId element) const {
    if (at(id).kind != OperationKind::reduced || at(id).dtype != at(element).dtype) return {};
    const auto number = static_cast<std::uint32_t>(at(id).payload >> 16);
    const Reduction& r = kernel_.reductions[number];
    if (r.elements != std::vector<OpId>{element} || r.reducer.combine.results.size() != 1 || r.reducer.finish.results.size() != 1) return {};
    const bool plain = r.reducer.finish.instructions[r.reducer.finish.results[0]].op == P::parameter;
    return plain && r.reducer.combine.instructions[r.reducer.combine.results[0]].op == combines ? std::optional(number) : std::nullopt;
  }

  bool says_hidden(OpId id, OpId score) const {
    if (!is(id, P::eq)) return false;
    const OpId* side = at(id).args;
    return (reduction(side[0], P::maximum, score) && is_number(at(side[1]), -kInfinity)) || (reduction(side[1], P::maximum, score) && is_number(at(side[0]), -kInfinity));
  }

  const Kernel& kernel_;
};

class Blocks {
 public:
  Blocks(Kernel& kernel, const RowSoftmax& softmax, std::uint32_t panel, const ir::Graph& graph, IndexAlgebra& algebra)
      : kernel_(kernel), softmax_(softmax), panel_(panel), graph_(graph), algebra_(algebra), dtype_(kernel.operations[softmax.score].dtype),
        columns_(kernel.inner[0].extent), at_once_(columns_.is_constant() && columns_.constant() <= kBlockColumns) {}

  void run() {
    place_columns();
    const OpId before = at_once_ ? kNoOp : state(RowState::largest), here = reduced(softmax_.largest);
    const OpId largest = at_once_ ? here : primitive(P::maximum, before, here);
    // A row of which nothing is seen yet has no finite score to be measured by.
    const OpId seen_none = primitive(P::eq, largest, number(-kInfinity), kNoOp, DType::b8);
    const OpId base = primitive(P::select, seen_none, number(0), largest);
    const OpId weight = primitive(P::exp, primitive(P::sub, softmax_.score, base));
    kernel_.reductions[softmax_.sum].elements = {weight};
    OpId sum = reduced(softmax_.sum);
    Stage row{StageKind::row, {}, {{panel_, place(RowState::new_largest), largest}}};
    if (!at_once_) {
      const OpId factor = primitive(P::exp, primitive(P::sub, before, base));
      row.stores.push_back({panel_, place(RowState::factor), factor});
      sum = primitive(P::add, primitive(P::mul, state(RowState::sum), factor), sum);
    }
    row.stores.push_back({panel_, place(RowState::new_sum), sum});
    kernel_.stages = {{StageKind::reduce, {softmax_.largest}, {}}, {StageKind::reduce, {softmax_.sum}, {{panel_, here_, weight}}}, std::move(row)};
  }

 private:
  void place_columns() {
    Loop& inner = kernel_.inner[0];
    const Dim columns = at_once_ ? columns_ : tile_symbol(graph_, TileSymbol::columns), first = at_once_ ? Dim(0) : tile_symbol(graph_, TileSymbol::column);
    const Loop within{algebra_.new_loop(columns), columns};
    here_ = row() * Dim(kPanelStride) + Dim::symbol(within.variable);
    for (Operation& op : kernel_.operations) {
      if (op.kind == OperationKind::load && op.payload == panel_) op.offset = here_;
      else op.offset = algebra_.substitute(op.offset, inner.variable, first + Dim::symbol(within.variable));
    }
    inner = within;
  }

  Dim row() const { return Dim::symbol(kernel_.outer[0].variable); }
  Dim place(RowState which) const { return Dim(place_of(which)) + row(); }

  OpId add(Operation op) {
    kernel_.operations.push_back(std::move(op));
    return static_cast<OpId>(kernel_.operations.size() - 1);
  }
  OpId state(RowState which) { return add({.kind = OperationKind::load, .dtype = dtype_, .payload = panel_, .offset = place(which)}); }
  OpId reduced(std::uint32_t reduction) { return add({.kind = OperationKind::reduced, .dtype = dtype_, .payload = std::uint64_t{reduction} << 16}); }
  OpId number(double value) {
    const std::uint64_t bits = dtype_ == DType::f64 ? std::bit_cast<std::uint64_t>(value) : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return add({.kind = OperationKind::constant, .dtype = dtype_, .payload = bits});
  }
  OpId primitive(P p, OpId a, OpId b = kNoOp, OpId c = kNoOp, std::optional<DType> dtype = {}) {
    return add({.kind = OperationKind::primitive, .primitive = p, .dtype = dtype.value_or(dtype_), .args = {a, b, c}});
  }

  Kernel& kernel_;
  const RowSoftmax& softmax_;
  std::uint32_t panel_;
  const ir::Graph& graph_;
  IndexAlgebra& algebra_;
  DType dtype_;
  Dim columns_;
  bool at_once_;  // a known number of columns, in one block
  Dim here_;
};

}  // namespace

std::optional<RowSoftmax> softmax_of(const Kernel& kernel) { return Pattern(kernel).find(); }

void take_by_blocks(Kernel& kernel, const RowSoftmax& softmax, std::uint32_t panel, const ir::Graph& graph, IndexAlgebra& algebra) {
  Blocks(kernel, softmax, panel, graph, algebra).run();
}

}  // namespace tenon::codegen
