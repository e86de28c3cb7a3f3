#include "jit.h"

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/TargetParser/Triple.h>

#include <array>
#include <mutex>
#include <set>

#include "core/base/error.h"
#include "lower/wide_masks.h"
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

/// Loop strength reduction takes a sixth of a compile, and the emitters have already put what stays the same in front of the loops.
void leave_out_strength_reduction() {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find("disable-lsr");
  if (found != options.end()) static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(true);
}

}  // namespace

struct Jit::Engine {
  std::mutex mutex;
  std::array<std::vector<std::unique_ptr<llvm::TargetMachine>>, 3> idle_machines;
  std::unique_ptr<llvm::orc::ExecutionSession> session;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> linker;
  llvm::orc::JITDylib* library = nullptr;
  std::set<std::string> defined;
  std::size_t linked = 0;

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
      if (defined.contains(name)) continue;
      void* address = routine_address(name);
      TENON_CHECK(address, "generated code calls {}, which it may not", name);
      defined.insert(name);
      symbols[session->intern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    if (!symbols.empty()) must(library->define(llvm::orc::absoluteSymbols(std::move(symbols))), "defining routines");
  }
};

Jit::Jit(codegen::Target target) : target_(std::move(target)), engine_(std::make_shared<Engine>()) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    leave_out_strength_reduction();
  });
  auto control = must(llvm::orc::SelfExecutorProcessControl::Create(), "starting the JIT");
  engine_->session = std::make_unique<llvm::orc::ExecutionSession>(std::move(control));
  engine_->linker = std::make_unique<llvm::orc::ObjectLinkingLayer>(*engine_->session, engine_->session->getExecutorProcessControl().getMemMgr());
  engine_->library = &engine_->session->createBareJITDylib("routines");
  engine_->define_routines({"memcpy", "memset", "memmove", "floor", "floorf", "ceil", "ceilf", "trunc", "truncf", "roundeven", "roundevenf"});
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
  auto machine = engine_->take_machine(target_, tier);
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(kTriple);
  fill(module);
  if (tier != Tier::quick && !target_.has_mask_registers())
    for (llvm::Function& f : module) codegen::widen_masks(f);
  if (listing) list(*machine, module, listing);
#ifndef NDEBUG
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  TENON_CHECK(!llvm::verifyModule(module, &problems), "generated IR is not valid: {}", problem);
#endif
  ObjectCode object;
  for (const llvm::Function& f : module)
    if (f.isDeclaration() && !f.isIntrinsic()) object.routines.insert(f.getName().str());
  const Bytes bytes = emitted(*machine, module, llvm::CodeGenFileType::ObjectFile);
  object.bytes.assign(bytes.begin(), bytes.end());
  engine_->give_back(std::move(machine), tier);
  return object;
}

LinkedCode Jit::link(const ObjectCode& object, const std::vector<std::string>& names) {
  using llvm::orc::JITDylib, llvm::orc::JITDylibLookupFlags;
  LinkedCode code;
  auto copy = llvm::MemoryBuffer::getMemBufferCopy(object.bytes, "kernels");
  const std::lock_guard lock(engine_->mutex);
  engine_->define_routines(object.routines);
  auto& own = engine_->session->createBareJITDylib("kernels" + std::to_string(engine_->linked++));
  code.memory = std::shared_ptr<const void>(&own, [engine = engine_](const void* library) {
    const std::lock_guard taken(engine->mutex);
    llvm::consumeError(engine->session->removeJITDylib(*static_cast<JITDylib*>(const_cast<void*>(library))));
  });
  own.addToLinkOrder(*engine_->library, JITDylibLookupFlags::MatchAllSymbols);
  must(engine_->linker->add(own, std::move(copy)), "linking generated code");
  llvm::orc::SymbolLookupSet wanted;
  for (const std::string& name : names) wanted.add(engine_->session->intern(name));
  auto found = must(engine_->session->lookup({{&own, JITDylibLookupFlags::MatchAllSymbols}}, std::move(wanted)), "looking generated code up");
  for (const std::string& name : names) code.functions.push_back(found[engine_->session->intern(name)].getAddress().toPtr<void*>());
  return code;
}

}  // namespace tenon::llvm_backend
