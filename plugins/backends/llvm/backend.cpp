// The entry of the plugin "llvm".
#include "tenon/backend.h"

#include <nlohmann/json.hpp>

#include "claiming.h"
#include "compile/code_memory.h"
#include "core/ir/buffer.h"
#include "run/program.h"

namespace tenon::llvm_backend {
namespace {

class LlvmBackend : public Backend {
 public:
  static constexpr std::uint32_t kFlags = TENON_DYNAMIC_SHAPES | TENON_COMPILE_REENTRANT | TENON_EXECUTE_REENTRANT | TENON_STRIDED_INPUTS | TENON_BAKED_CONSTANTS;

  LlvmBackend(HostServices host, std::string options) : host_(host), options_(nlohmann::json::parse(options)) {
    if (Profiling(host_).takes_code()) use_anonymous_code_memory();
  }

  void claim(const GraphView& graph, Claims& claims) override { claim_nodes(ir::read_buffer(graph.bytes()).value(), claims); }

  std::unique_ptr<Artefact> compile(const GraphView& graph, std::span<const DLTensor* const> constants, const std::string& options) override {
    nlohmann::json chosen = options_;
    chosen.update(nlohmann::json::parse(options));
    ProgramOptions program;
    program.fuse = chosen.value("fuse", true);
    program.matrix_kernels = chosen.value("matrix_kernels", true);
    program.swap_tiers = chosen.value("swap_tiers", true);
    program.relaxed = chosen.value("mode", "") == "max-autotune";
    program.log_fusion = host_.log_enabled("fusion");
    program.log_code = host_.log_enabled("kernel_code");
    program.log_times = host_.log_enabled("kernel_times");
    program.log_steps = host_.log_enabled("steps");
    KernelCache& cache = kernel_cache(chosen.value("vector_width", 0u), chosen.value("quiet_comparisons", false));
    return std::make_unique<Program>(host_, cache, ir::read_buffer(graph.bytes(), constants).value(), program);
  }

 private:
  HostServices host_;
  nlohmann::json options_;
};

}  // namespace
}  // namespace tenon::llvm_backend

TENON_BACKEND(tenon::llvm_backend::LlvmBackend, "llvm", "0.1.0", "Compiles fused loop nests and matrix products for the CPU with LLVM")
