// A matrix product of a plan as a call runs it.
#pragma once

#include <memory>
#include <optional>

#include "compile/matrix_code.h"
#include "launch/kernel_run.h"
#include "products/product_chain.h"
#include "tiles/panel_chain.h"

namespace tenon::llvm_backend {

struct CompiledProduct {
  MatrixKernel matrix;
  Place a, b, c;
  std::optional<CompiledKernel> pack_a, table, pack_b, table_b, epilogue, sums, pooling;
  std::unique_ptr<PackedOperand> packed = std::make_unique<PackedOperand>();
};

/// Adds the parts of the code of matrix products that the step calls.
void add_parts(const TiledProduct& step, MatrixParts& parts);

/// Runs all products of the step's batch, on several threads where that pays.
void run(const HostServices& host, const TiledProduct& step, const CompiledProduct& compiled, const Call& call);

struct CompiledChain {
  CompiledProduct first, second;
  CompiledKernel between;
};

/// Runs both products of a chain for all of its batch.
void run(const HostServices& host, const PanelChain& step, const CompiledChain& compiled, const Call& call);

}  // namespace tenon::llvm_backend
