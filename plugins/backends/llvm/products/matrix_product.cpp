#include "matrix_product.h"

#include "multiplier.h"

namespace tenon::llvm_backend {

void multiply_rows(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel, const std::function<void(const RowsOfProduct&)>& body) {
  if (kernel.dtype == DType::f64) Multiplier<double>(host, kernel, product, parallel).by_rows(body);
  else Multiplier<float>(host, kernel, product, parallel).by_rows(body);
}

void multiply(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel) {
  if (kernel.dtype == DType::f64) Multiplier<double>(host, kernel, product, parallel).run();
  else Multiplier<float>(host, kernel, product, parallel).run();
}

}  // namespace tenon::llvm_backend
