// Two products with a kernel over whole rows between them, done a block of rows at a time: what is between them is a panel.
#pragma once

#include <optional>
#include <vector>

#include "tiles/tiled_product.h"

namespace tenon::llvm_backend {

/// A block of rows of `first` is written to a panel, `between` makes of it in place what stands on the left of `second`. Rows of the panel are
/// dense. `first.c` and `second.a` are the panel.
struct PanelChain {
  TiledProduct first, second;
  codegen::KernelStep between;
  std::vector<std::size_t> second_batch;  // by batch loop of `second`: the same loop of `first`
  std::optional<ir::Dim> seen;  // columns of the panel after which a block of rows is masked: not read of `first`, and zero for `second`
  bool by_blocks = false;       // `between` takes kBlockColumns columns at a time (softmax_blocks.h); what `second` gives is then divided by the row's sum
  bool zeroes_hidden = false;   // by blocks: rows whose scores are all -inf give zero
  std::vector<std::size_t> second_rows;   // batch loops of `first` that are outer loops of the rows of `second`, the outermost first
};

/// `log` takes a line for each row that the kernel between them keeps; it may be empty.
PanelChain on_panels(codegen::ChainStep chain, const TilingContext& context, const std::function<void(const std::string&)>& log);

}  // namespace tenon::llvm_backend
