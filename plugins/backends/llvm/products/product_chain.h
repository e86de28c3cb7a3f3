// Two matrix products with a kernel over whole rows between them, a block of rows after the other.
#pragma once

#include <cstdint>
#include <functional>

#include "matrix_product.h"

namespace tenon::llvm_backend {

/// Two products of the same rows: `between` makes of a block of rows of `first`, which lies densely in a panel, the left operand of
/// `second`, in place. Row i of `first` is row second_row + i of `second`. first.c and second.a are null.
struct ProductChain {
  MatrixProduct first, second;
  std::int64_t second_row = 0;
  std::function<void(const Tile& rows, void* panel)> between;
  std::function<std::int64_t(const Tile& rows)> seen;  // columns of the panel that count for the rows; may be empty: all
  bool by_blocks = false;      // `between` takes the columns of the tile alone, and keeps RowState
  bool zeroes_hidden = false;  // rows without a score above -inf give zero
};

/// Computes both products, a block of rows after the other; with `parallel` on the host's threads.
void multiply(const HostServices& host, const MatrixKernel& kernel, const ProductChain& chain, bool parallel);

}  // namespace tenon::llvm_backend
