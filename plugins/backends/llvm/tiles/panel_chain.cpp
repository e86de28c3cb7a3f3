#include "tiles/panel_chain.h"

#include <algorithm>
#include <utility>

#include "tiles/softmax_blocks.h"

namespace tenon::llvm_backend {

using namespace codegen;

namespace {

class PanelChainBuilder {
 public:
  PanelChainBuilder(ChainStep chain, const TilingContext& context)
      : symbols_(context.symbols), algebra_(context.algebra), chain_(std::move(chain)), step_(std::move(chain_.between)),
        made_{tiled(chain_.first, context), tiled(std::move(chain_.second), context), {}, std::move(chain_.second_batch), {}, false, false, std::move(chain_.second_rows)} {
    target_ = step_.kernel.stages.back().stores[0].buffer;
    source_ = static_cast<std::uint32_t>(std::ranges::find(step_.buffers, made_.first.c) - step_.buffers.begin());
  }

  PanelChain build() {
    place_on_panel();
    if (chain_.diagonal) made_.seen = symbols_(TileSymbol::row) + symbols_(TileSymbol::rows) + Dim(*chain_.diagonal);
    join_buffers();
    if (const auto& softmax = chain_.softmax) {
      const auto panel = std::ranges::find(step_.buffers, kPanel) - step_.buffers.begin();
      take_by_blocks(step_.kernel, *softmax, static_cast<std::uint32_t>(panel), symbols_, algebra_);
      made_.by_blocks = true, made_.zeroes_hidden = softmax->zeroes_hidden;
    }
    made_.between = std::move(step_);
    return std::move(made_);
  }

 private:
  std::span<const std::size_t> order() const { return chain_.first_batch; }

  /// The first of the loops that are the rows of the first product; nothing when one of them is rows in part.
  std::optional<std::size_t> rows_in(std::span<const Loop> outer) const {
    for (std::size_t i = outer.size() + 1; i-- > 0;)
      if (count_of(outer.subspan(i)) == made_.first.m) return i;
    return {};
  }

  /// Expresses loops by their position in all of them.
  void stand_at(std::span<const Loop> loops, Dim flat, std::vector<std::pair<SymbolId, Dim>>& replacements) const {
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const Dim size = count_of(loops.subspan(i + 1));
      replacements.emplace_back(loops[i].variable, i + 1 == loops.size() ? flat : algebra_.floor_div(flat, size));
      flat = algebra_.mod(flat, size);
    }
  }

  Dim batch_symbol(std::size_t i) const { return symbols_(TileSymbol::batch, order()[i]); }
  const Dim& batch_extent(std::size_t i) const { return made_.first.batch[order()[i]]; }

  /// The position of the product in its batch.
  Dim place_in_batch() const {
    Dim flat(0);
    for (std::size_t i = 0; i < order().size(); ++i) flat = flat * batch_extent(i) + batch_symbol(i);
    return flat;
  }

  /// Loops of the batch, each by its own symbol where the kernel has the same ones as the products.
  void stand_in_batch(std::span<const Loop> loops, std::vector<std::pair<SymbolId, Dim>>& replacements) const {
    bool same = loops.size() == order().size();
    for (std::size_t i = 0; same && i < loops.size(); ++i) same = loops[i].extent == batch_extent(i);
    if (!same) return stand_at(loops, place_in_batch(), replacements);
    for (std::size_t i = 0; i < loops.size(); ++i) replacements.emplace_back(loops[i].variable, batch_symbol(i));
  }

  void place_on_panel() {
    Kernel& kernel = step_.kernel;
    const std::span<const Loop> outer(kernel.outer);
    const auto rows = rows_in(outer);
    const Dim extent = symbols_(TileSymbol::rows);
    const Loop row{algebra_.new_loop(extent), extent};
    std::vector<std::pair<SymbolId, Dim>> replacements;
    const Dim here_in_rows = symbols_(TileSymbol::row) + Dim::symbol(row.variable);
    if (rows) stand_in_batch(outer.first(*rows), replacements);
    if (rows) stand_at(outer.subspan(*rows), here_in_rows, replacements);
    else stand_at(outer, place_in_batch() * made_.first.m + here_in_rows, replacements);
    const Dim here = Dim::symbol(row.variable) * made_.first.n + Dim::symbol(kernel.inner[0].variable);
    for (Operation& op : kernel.operations) {
      const bool source = op.kind == OperationKind::load && op.payload == source_;
      for (const auto& [loop, by] : replacements) op.offset = algebra_.substitute(op.offset, loop, by);
      if (source) op.offset = here;
    }
    kernel.stages.back().stores[0].offset = here;
    kernel.outer = {row};
  }

  /// What the kernel reads and what it writes is one panel.
  void join_buffers() {
    Kernel& kernel = step_.kernel;
    auto number = [&](std::uint64_t b) { return b == source_ ? target_ - (target_ > source_) : b - (b > source_); };
    for (Operation& op : kernel.operations)
      if (op.kind == OperationKind::load) op.payload = number(op.payload);
    kernel.stages.back().stores[0].buffer = static_cast<std::uint32_t>(number(target_));
    kernel.buffers[target_] = {made_.first.dtype, Dim(0), true};
    step_.buffers[target_] = kPanel;
    kernel.buffers.erase(kernel.buffers.begin() + source_);
    step_.buffers.erase(step_.buffers.begin() + source_);
  }

  const TileSymbols symbols_;
  IndexAlgebra& algebra_;
  ChainStep chain_;
  KernelStep step_;
  PanelChain made_;
  std::uint32_t source_ = 0, target_ = 0;
};

}  // namespace

PanelChain on_panels(ChainStep chain, const TilingContext& context, const std::function<void(const std::string&)>& log) {
  PanelChain made = PanelChainBuilder(std::move(chain), context).build();
  shape(made.between, context.machine, context.graph, context.algebra, log);
  return made;
}

}  // namespace tenon::llvm_backend
