#include "jit.h"

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/TargetParser/Triple.h>

#include <array>
#include <mutex>
#include <set>

#include "core/base/error.h"
#include "routines.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace tenon::llvm_backend {
namespace {

template <class T>
T must(llvm::Expected<T> value, const char* what) {
  if (!value) throw Exception(Code::internal, std::string(what) + ": " + llvm::toString(value.takeError()));
  return std::move(*value);
}

void must(llvm::Error error, const char* what) {
  if (error) throw Exception(Code::internal, std::string(what) + ": " + llvm::toString(std::move(error)));
}

llvm::CodeGenOptLevel level_of(Tier tier) {
  return tier == Tier::quick ? llvm::CodeGenOptLevel::None : tier == Tier::standard ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Default;
}

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

std::unique_ptr<llvm::TargetMachine> make_machine(const codegen::Target& target, Tier tier) {
  std::string problem;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, problem);
  TENON_CHECK(found, "LLVM has no x86 target: {}", problem);
  llvm::TargetOptions options;
  // The small code model suffices: each module's code and constants are linked next to each other, calls go through stubs.
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(kTriple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                                                         llvm::CodeModel::Small, level_of(tier), true));
}

}  // namespace

struct Jit::Engine {
  std::mutex mutex;
  std::array<std::vector<std::unique_ptr<llvm::TargetMachine>>, 3> idle_machines;
  std::unique_ptr<llvm::orc::ExecutionSession> session;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> linker;
  llvm::orc::JITDylib* library = nullptr;
  std::set<std::string> defined;

  ~Engine() {
    if (session) llvm::consumeError(session->endSession());
  }

  std::unique_ptr<llvm::TargetMachine> take_machine(const codegen::Target& target, Tier tier) {
    {
      const std::lock_guard lock(mutex);
      auto& idle = idle_machines[static_cast<std::size_t>(tier)];
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
    idle_machines[static_cast<std::size_t>(tier)].push_back(std::move(machine));
  }

  /// Makes the functions that the module only declares known to the linker, and those that code generation may call by itself.
  void define_routines(const std::set<std::string>& names) {
    llvm::orc::SymbolMap symbols;
    for (const std::string& name : names) {
      if (!defined.insert(name).second) continue;
      void* address = routine_address(name);
      TENON_CHECK(address, "generated code calls {}, which it may not", name);
      symbols[session->intern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    if (!symbols.empty()) must(library->define(llvm::orc::absoluteSymbols(std::move(symbols))), "defining routines");
  }
};

Jit::Jit(codegen::Target target) : target_(std::move(target)), engine_(std::make_unique<Engine>()) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  auto control = must(llvm::orc::SelfExecutorProcessControl::Create(), "starting the JIT");
  engine_->session = std::make_unique<llvm::orc::ExecutionSession>(std::move(control));
  engine_->linker = std::make_unique<llvm::orc::ObjectLinkingLayer>(*engine_->session, engine_->session->getExecutorProcessControl().getMemMgr());
  engine_->library = &engine_->session->createBareJITDylib("kernels");
  engine_->define_routines({"memcpy", "memset", "memmove", "floor", "floorf", "ceil", "ceilf", "trunc", "truncf", "roundeven", "roundevenf"});
}

Jit::~Jit() = default;

std::vector<void*> Jit::compile(const std::vector<std::string>& names, Tier tier, const std::function<void(llvm::Module&)>& fill,
                                const std::function<void(const std::string&)>& listing) {
  auto machine = engine_->take_machine(target_, tier);
  llvm::LLVMContext context;
  llvm::Module module(names.front(), context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(kTriple);
  fill(module);
  std::string text;
  if (listing) {
    llvm::raw_string_ostream stream(text);
    module.print(stream, nullptr);
    listing(text);
  }
#ifndef NDEBUG
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  TENON_CHECK(!llvm::verifyModule(module, &problems), "generated IR is not valid: {}", problem);
#endif
  std::set<std::string> wanted;
  for (const llvm::Function& f : module)
    if (f.isDeclaration() && !f.isIntrinsic()) wanted.insert(f.getName().str());

  auto generate = [&](llvm::CodeGenFileType type) {
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    llvm::legacy::PassManager passes;
    TENON_CHECK(!machine->addPassesToEmitFile(passes, stream, nullptr, type, true), "LLVM cannot emit code for this machine");
    passes.run(module);
    return bytes;
  };
  if (listing) {
    const auto copy = llvm::CloneModule(module);
    llvm::SmallVector<char, 0> assembly;
    llvm::raw_svector_ostream stream(assembly);
    llvm::legacy::PassManager passes;
    machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile, true);
    passes.run(*copy);
    listing(std::string(assembly.begin(), assembly.end()));
  }
  auto object = std::make_unique<llvm::SmallVectorMemoryBuffer>(generate(llvm::CodeGenFileType::ObjectFile), names.front(), false);
  engine_->give_back(std::move(machine), tier);
  const std::lock_guard lock(engine_->mutex);
  engine_->define_routines(wanted);
  must(engine_->linker->add(*engine_->library, std::move(object)), "linking generated code");
  llvm::orc::SymbolLookupSet wanted_names;
  for (const std::string& name : names) wanted_names.add(engine_->session->intern(name));
  auto found = must(engine_->session->lookup({{engine_->library, llvm::orc::JITDylibLookupFlags::MatchAllSymbols}}, std::move(wanted_names)), "looking generated code up");
  std::vector<void*> addresses;
  for (const std::string& name : names) addresses.push_back(found[engine_->session->intern(name)].getAddress().toPtr<void*>());
  return addresses;
}

}  // namespace tenon::llvm_backend
