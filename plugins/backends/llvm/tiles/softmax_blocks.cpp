#include "tiles/softmax_blocks.h"

#include <bit>
#include <limits>
#include <optional>

namespace tenon::llvm_backend {

using namespace codegen;
using P = ops::Primitive;

namespace {

constexpr double kNothingSeen = -std::numeric_limits<double>::infinity();

class SoftmaxBlocks {
 public:
  SoftmaxBlocks(Kernel& kernel, const RowSoftmax& softmax, std::uint32_t panel, const TileSymbols& symbols, IndexAlgebra& algebra)
      : kernel_(kernel), softmax_(softmax), panel_(panel), symbols_(symbols), algebra_(algebra), dtype_(kernel.operations[softmax.score].dtype),
        columns_(kernel.inner[0].extent), at_once_(columns_.is_constant() && columns_.constant() <= kBlockColumns) {}

  void run() {
    place_columns();
    const OpId before = at_once_ ? kNoOp : state(RowState::largest), here = reduced(softmax_.largest);
    const OpId largest = at_once_ ? here : primitive(P::maximum, before, here);
    // A row of which nothing is seen yet has no finite score to be measured by.
    const OpId seen_none = primitive(P::eq, largest, number(kNothingSeen), kNoOp, DType::b8);
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
    const Dim columns = at_once_ ? columns_ : symbols_(TileSymbol::columns), first = at_once_ ? Dim(0) : symbols_(TileSymbol::column);
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
  const TileSymbols& symbols_;
  IndexAlgebra& algebra_;
  DType dtype_;
  Dim columns_;
  bool at_once_;  // a known number of columns, in one block
  Dim here_;
};

}  // namespace

void take_by_blocks(Kernel& kernel, const RowSoftmax& softmax, std::uint32_t panel, const TileSymbols& symbols, IndexAlgebra& algebra) {
  SoftmaxBlocks(kernel, softmax, panel, symbols, algebra).run();
}

}  // namespace tenon::llvm_backend
