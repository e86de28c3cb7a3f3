// Equal kernels have equal texts, whatever numbers their loops had while they were planned.
#include "catch.h"
#include "loops/kernel.h"

using namespace tenon;
using codegen::Dim;
using codegen::OperationKind;

namespace {

/// y[i] = x[i], beside a load that nothing needs, at a loop that was another kernel's.
codegen::Kernel copy_with_stray_loop(std::uint32_t own, std::uint32_t stray) {
  const SymbolId loop(codegen::kFirstLoop + own), elsewhere(codegen::kFirstLoop + stray);
  codegen::Kernel kernel;
  kernel.outer = {{loop, Dim(64)}};
  kernel.buffers = {{DType::f32, Dim(256), false}, {DType::f32, Dim(256), true}};
  kernel.operations.push_back({.kind = OperationKind::load, .dtype = DType::f32, .payload = 0, .offset = Dim::symbol(elsewhere)});
  kernel.operations.push_back({.kind = OperationKind::load, .dtype = DType::f32, .payload = 0, .offset = Dim::symbol(loop)});
  kernel.stages = {{codegen::StageKind::row, {}, {{1, Dim::symbol(loop), 1}}}};
  return kernel;
}

}  // namespace

TEST_CASE("a kernel's text does not depend on how loops were numbered", "[loops]") {
  CHECK(codegen::to_text(copy_with_stray_loop(3, 40)) == codegen::to_text(copy_with_stray_loop(7, 1115)));
}
