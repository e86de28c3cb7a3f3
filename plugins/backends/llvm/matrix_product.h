// Matrix products around the generated microkernel: packing, blocking, threads.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/dtype.h"
#include "matrix/microkernel.h"
#include "tenon/host_services.h"

namespace tenon::llvm_backend {

/// c[i, j] = sum over k of a[i, k] * b[k, j]. Strides in elements; columns of c are contiguous.
struct MatrixProduct {
  std::int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  std::int64_t a_row = 0, a_column = 0;
  const void* b = nullptr;
  std::int64_t b_row = 0, b_column = 0;
  void* c = nullptr;
  std::int64_t c_row = 0;
};

/// A compiled kernel with what goes around it.
struct MatrixKernel {
  codegen::MicroKernel function = nullptr;
  codegen::TileShape tile;
  DType dtype = DType::f32;
};

/// Computes one product; with `parallel` on the host's threads. Scratch memory is kept by each thread for its next product.
void multiply(const HostServices& host, const MatrixKernel& kernel, const MatrixProduct& product, bool parallel);

}  // namespace tenon::llvm_backend
