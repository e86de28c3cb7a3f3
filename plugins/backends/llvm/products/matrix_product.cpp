#include "matrix_product.h"

#include "multiplier.h"
#include "outer_product.h"

namespace tenon::llvm_backend {

void multiply_rows(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel, const std::function<void(const RowsOfProduct&)>& body) {
  if (kernel.dtype == DType::f64) Multiplier<double>(host, kernel, product, parallel).by_rows(body);
  else Multiplier<float>(host, kernel, product, parallel).by_rows(body);
}

namespace {

template <class T>
void multiply_as(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel) {
  if (product.runs) OuterProduct<T>(host, kernel, product, parallel).run();
  else Multiplier<T>(host, kernel, product, parallel).run();
}

}  // namespace

void multiply(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel) {
  if (kernel.dtype == DType::f64) multiply_as<double>(host, kernel, product, parallel);
  else multiply_as<float>(host, kernel, product, parallel);
}

}  // namespace tenon::llvm_backend
