// The sums of register tiles stay in registers, whichever processor LLVM schedules for.
#include <llvm/IR/Module.h>

#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "catch.h"
#include "compile/jit.h"
#include "matrix/dot_kernel.h"
#include "matrix/microkernel.h"
#include "matrix/outer_kernel.h"

using namespace tenon;

namespace {

llvm_backend::Target target_of(const std::string& cpu, unsigned vector_bytes) {
  llvm_backend::Target target;
  target.cpu = cpu, target.vector_bytes = vector_bytes, target.has_fma = true;
  target.features = vector_bytes == 64 ? "+avx2,+fma,+avx512f,+avx512vl,+avx512bw,+avx512dq" : "+avx2,+fma";
  return target;
}

/// Of the loop with the most multiplications, how many there are and how many vectors are read from the stack or written to it.
struct Loop {
  int multiplications = 0, on_stack = 0;
};

Loop busiest_loop(const llvm_backend::Target& target, const std::function<void(llvm::Module&)>& fill) {
  std::string assembly;
  llvm_backend::Jit(target).compile(llvm_backend::Tier::tuned, fill, [&](const std::string& text) { assembly = text; });
  std::map<std::string, Loop> blocks;
  std::string line, block;
  for (std::istringstream lines(assembly); std::getline(lines, line);) {
    if (line.starts_with(".LBB") || line.starts_with("# %bb")) block = line;
    if (line.find("vfm") != std::string::npos || line.find("vmul") != std::string::npos) ++blocks[block].multiplications;
    if (line.find("(%rsp") != std::string::npos && line.find("mm") != std::string::npos) ++blocks[block].on_stack;
  }
  Loop busiest;
  for (const auto& [name, loop] : blocks)
    if (loop.multiplications > busiest.multiplications) busiest = loop;
  return busiest;
}

}  // namespace

TEST_CASE("sums of a register tile stay in registers", "[matrix]") {
  using llvm_backend::Fetches;
  for (const auto& [cpu, bytes] : {std::pair("rocketlake", 64u), std::pair("sapphirerapids", 64u), std::pair("znver4", 64u), std::pair("haswell", 32u), std::pair("znver3", 32u)}) {
    const llvm_backend::Target target = target_of(cpu, bytes);
    for (const DType dtype : {DType::f32, DType::f64}) {
      const llvm_backend::TileShape usual = tile_shape(target, dtype), narrow = narrow_tile_shape(target, dtype), streaming = streaming_tile_shape(target, dtype);
      // The pairs that are compiled (matrix_code.cpp).
      for (const auto& [shape, fetches] : {std::pair(usual, Fetches::ahead), std::pair(usual, Fetches::own_rows), std::pair(narrow, Fetches::ahead), std::pair(narrow, Fetches::own_rows), std::pair(usual, Fetches::nothing),
                                           std::pair(streaming, Fetches::nothing), std::pair(streaming, Fetches::far_ahead)}) {
        const Loop loop = busiest_loop(target, [&, tile = shape, fetched = fetches](llvm::Module& module) { emit_microkernel(module, target, dtype, tile, "product", fetched); });
        INFO(cpu << ", " << name_of(dtype) << ", " << shape.rows << " x " << shape.columns << ", fetches " << static_cast<int>(fetches) << ": " << loop.on_stack << " of " << loop.multiplications);
        CHECK(loop.multiplications >= shape.rows * shape.columns / static_cast<int>(bytes / size_of(dtype)));
        CHECK(loop.on_stack == 0);
      }
    }
    for (const DType dtype : {DType::f32, DType::f64})
      for (const auto& [shape, reads] : {std::pair(tile_shape(target, dtype), llvm_backend::Reads::whole_rows), std::pair(streaming_tile_shape(target, dtype), llvm_backend::Reads::columns),
                                         std::pair(narrow_tile_shape(target, dtype), llvm_backend::Reads::columns)}) {
        const Loop loop = busiest_loop(target, [&, tile = shape, read = reads](llvm::Module& module) { emit_outer_kernel(module, target, dtype, tile, "outer", read); });
        INFO(cpu << ", " << name_of(dtype) << ", outer products of " << shape.rows << " x " << shape.columns << ", reads " << static_cast<int>(reads) << ": " << loop.on_stack << " of " << loop.multiplications);
        CHECK(loop.multiplications >= shape.rows * shape.columns / static_cast<int>(bytes / size_of(dtype)));
        CHECK(loop.on_stack == 0);
      }
    for (const llvm_backend::TileShape& shape : {llvm_backend::dot_shape(target), llvm_backend::dot_row_shape()}) {
      const Loop loop = busiest_loop(target, [&](llvm::Module& module) { emit_dot_kernel(module, target, DType::f32, shape, "dot"); });
      INFO(cpu << ", dot product of " << shape.rows << " x " << shape.columns << ": " << loop.on_stack << " of " << loop.multiplications);
      CHECK(loop.on_stack == 0);
    }
    const Loop loop = busiest_loop(target, [&](llvm::Module& module) { emit_window_dots(module, target, DType::f32, llvm_backend::dot_shape(target), "dots"); });
    INFO(cpu << ", dot products over windows: " << loop.on_stack << " of " << loop.multiplications);
    CHECK(loop.on_stack == 0);
  }
}
