// The functions of matrix products in parts, each compiled when a program first needs it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "stored_code.h"
#include "jit.h"
#include "products/matrix_product.h"

namespace tenon::llvm_backend {

/// Functions that are compiled together: every product reads panels; some have few rows, or one, or a left operand that lies in windows (and few columns), or a right one
/// whose columns lie in runs (and may be summed by squares), or are of half precision and multiply few rows.
enum class MatrixPart : std::uint8_t { panels, few_rows, windows, few_columns, large_squares, one_row, runs, square_sums, rows_of_f16, rows_of_bf16 };

using MatrixParts = std::set<std::pair<DType, MatrixPart>>;

/// Thread-safe: threads may compile different parts at once.
class MatrixCode {
 public:
  /// Compiles with `jit`, which it borrows.
  explicit MatrixCode(Jit& jit) : jit_(jit) {}

  /// Compiles a part, or takes it from the store, where it is not known yet.
  void prepare(const HostServices& host, DType dtype, MatrixPart part) {
    if (needs(dtype, part)) functions(host, dtype, part);
  }
  /// Gives the code of products in float32, float64 or pairs of bfloat16: of all parts that are wanted for that dtype. The functions of others are null.
  MatrixKernel kernel(const HostServices& host, DType dtype, const MatrixParts& wanted);

 private:
  struct Entry {
    std::mutex mutex;
    LinkedCode code;
  };

  /// False of windows whose rows are copied: they are multiplied as other rows are.
  bool needs(DType dtype, MatrixPart part) const { return part != MatrixPart::windows || !has_tile_registers(jit_.target(), dtype); }
  const std::vector<void*>& functions(const HostServices& host, DType dtype, MatrixPart part);
  MatrixKernel shapes(DType dtype) const;
  void fill(llvm::Module& module, DType dtype, MatrixPart part, const std::vector<std::string>& names) const;

  Jit& jit_;
  std::mutex mutex_;
  std::map<std::pair<DType, MatrixPart>, std::unique_ptr<Entry>> entries_;
};

}  // namespace tenon::llvm_backend
