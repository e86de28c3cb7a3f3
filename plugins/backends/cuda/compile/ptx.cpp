#include "compile/ptx.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Pass.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Scalar.h>

#include <memory>
#include <mutex>

#include "core/base/error.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace tenon::cuda {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";
/// PTX 8.0 (CUDA 12.0), the first that knows sm_90a.
constexpr const char* kVersion = "+ptx80";

std::unique_ptr<llvm::TargetMachine> make_machine(const std::string& architecture) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string problem;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, problem);
  TENON_CHECK(found, "LLVM has no PTX target: {}", problem);
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(kTriple, architecture, kVersion, llvm::TargetOptions(), llvm::Reloc::PIC_));
}

}  // namespace

std::string to_ptx(const std::string& architecture, const std::function<void(llvm::Module&)>& fill, bool hoists) {
  const auto machine = make_machine(architecture);
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(kTriple);
  fill(module);
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  TENON_CHECK(!llvm::verifyModule(module, &problems), "generated IR is not valid: {}", problem);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (hoists) passes.add(llvm::createEarlyCSEPass()), passes.add(llvm::createLICMPass());
  TENON_CHECK(!machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile, true), "LLVM cannot emit PTX");
  passes.run(module);
  return std::string(text.str());
}

std::string with_clusters(std::string ptx, const std::string& kernel, unsigned blocks) {
  if (blocks == 1) return ptx;
  const std::size_t entry = ptx.find(".entry " + kernel + "("), body = ptx.find("\n{", entry);
  TENON_CHECK(entry != ptx.npos && body != ptx.npos, "a text has no kernel {}", kernel);
  return ptx.insert(body, "\n.reqnctapercluster " + std::to_string(blocks) + ", 1, 1");
}

}  // namespace tenon::cuda
