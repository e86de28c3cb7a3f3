#include "jit.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/TargetParser/Triple.h>

#include <array>
#include <mutex>

#include "core/base/error.h"
#include "vectors/wide_masks.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace tenon::llvm_backend {
namespace {

llvm::CodeGenOptLevel level_of(Tier tier) {
  return tier == Tier::quick ? llvm::CodeGenOptLevel::None : tier == Tier::standard ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Default;
}

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target, Tier tier) {
  std::string problem;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, problem);
  TENON_CHECK(found, "LLVM has no x86 target: {}", problem);
  llvm::TargetOptions options;
  // The small code model suffices: each module's code and constants are linked next to each other, calls go through stubs.
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(kTriple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                                                         llvm::CodeModel::Small, level_of(tier), true));
}

/// Loop strength reduction takes a sixth of a compile, and the emitters have already put what stays the same in front of the loops.
void leave_out_strength_reduction() {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find("disable-lsr");
  if (found != options.end()) static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
}

}  // namespace

/// Code generators that no thread uses at the moment.
struct Jit::Machines {
  std::mutex mutex;
  std::array<std::vector<std::unique_ptr<llvm::TargetMachine>>, 3> by_tier;

  std::unique_ptr<llvm::TargetMachine> take(const Target& target, Tier tier) {
    {
      const std::lock_guard lock(mutex);
      auto& idle = by_tier[static_cast<std::size_t>(tier)];
      if (!idle.empty()) {
        auto machine = std::move(idle.back());
        idle.pop_back();
        return machine;
      }
    }
    return make_machine(target, tier);
  }

  void give_back(std::unique_ptr<llvm::TargetMachine> machine, Tier tier) {
    const std::lock_guard lock(mutex);
    by_tier[static_cast<std::size_t>(tier)].push_back(std::move(machine));
  }
};

Jit::Jit(Target target) : target_(std::move(target)), idle_(std::make_unique<Machines>()) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    leave_out_strength_reduction();
  });
}

Jit::~Jit() = default;

namespace {

using Bytes = llvm::SmallVector<char, 0>;

Bytes emitted(llvm::TargetMachine& machine, llvm::Module& module, llvm::CodeGenFileType type) {
  Bytes bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  TENON_CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, type, true), "LLVM cannot emit code for this machine");
  passes.run(module);
  return bytes;
}

void list(llvm::TargetMachine& machine, llvm::Module& module, const std::function<void(const std::string&)>& listing) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  listing(text);
  const auto copy = llvm::CloneModule(module);
  const Bytes assembly = emitted(machine, *copy, llvm::CodeGenFileType::AssemblyFile);
  listing(std::string(assembly.begin(), assembly.end()));
}

}  // namespace

ObjectCode Jit::compile(Tier tier, const std::function<void(llvm::Module&)>& fill, const std::function<void(const std::string&)>& listing) {
  auto machine = idle_->take(target_, tier);
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(kTriple);
  fill(module);
  for (llvm::Function& f : module) f.setDoesNotThrow();  // nothing unwinds through a kernel: it has no tables for that
  if (tier != Tier::quick && !target_.has_mask_registers())
    for (llvm::Function& f : module) widen_masks(f);
  if (listing) list(*machine, module, listing);
#ifndef NDEBUG
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  TENON_CHECK(!llvm::verifyModule(module, &problems), "generated IR is not valid: {}", problem);
#endif
  const Bytes bytes = emitted(*machine, module, llvm::CodeGenFileType::ObjectFile);
  idle_->give_back(std::move(machine), tier);
  return {bytes.begin(), bytes.end()};
}

}  // namespace tenon::llvm_backend
