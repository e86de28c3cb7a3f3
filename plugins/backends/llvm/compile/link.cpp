#include <llvm/ExecutionEngine/JITLink/ELF_x86_64.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <span>
#include <unordered_map>

#include "core/base/error.h"
#include "jit.h"
#include "routines.h"

namespace tenon::llvm_backend {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::BitmaskEnumDetail::operator&;
using llvm::orc::ExecutorAddr;

/// What a link finds, for its caller: LLVM's linker owns the rest.
struct Outcome {
  std::shared_ptr<CodePiece> memory;
  std::unordered_map<std::string, std::pair<void*, std::size_t>> functions;  // by name, with their sizes
  std::string problem;
};

/// All that an object has as one piece: code, and the constants and the table of addresses that it reads.
class OnePiece final : public jitlink::JITLinkMemoryManager {
 public:
  explicit OnePiece(Outcome& outcome) : outcome_(outcome) {}

  void allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph, OnAllocatedFunction allocated) override {
    try {
      allocated(laid_out(graph));
    } catch (const Exception& failure) {
      allocated(llvm::createStringError(failure.what()));
    }
  }
  void deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction deallocated) override {
    for (FinalizedAlloc& each : allocations) each.release();
    deallocated(llvm::Error::success());
  }

 private:
  /// The content is put together in memory of its own and copied when it is whole.
  class InFlight final : public InFlightAlloc {
   public:
    InFlight(Outcome& outcome, std::vector<char> content) : outcome_(outcome), content_(std::move(content)) {}
    void abandon(OnAbandonedFunction abandoned) override { abandoned(llvm::Error::success()); }
    void finalize(OnFinalizedFunction finalized) override {
      try {
        outcome_.memory->write(std::as_bytes(std::span(content_)));
        finalized(FinalizedAlloc(ExecutorAddr::fromPtr(outcome_.memory->address())));
      } catch (const Exception& failure) {
        finalized(llvm::createStringError(failure.what()));
      }
    }

   private:
    Outcome& outcome_;
    std::vector<char> content_;
  };

  AllocResult laid_out(jitlink::LinkGraph& graph) {
    jitlink::BasicLayout layout(graph);
    std::vector<std::size_t> offsets;
    std::size_t bytes = 0;
    for (auto& [group, segment] : layout.segments()) {
      const bool writable = (group.getMemProt() & llvm::orc::MemProt::Write) != llvm::orc::MemProt::None;
      if (writable && segment.ContentSize + segment.ZeroFillSize > 0) return llvm::createStringError("generated code has variables");
      bytes = llvm::alignTo(bytes, segment.Alignment);
      offsets.push_back(bytes);
      bytes += segment.ContentSize + segment.ZeroFillSize;
    }
    outcome_.memory = take_code_memory(bytes);
    std::vector<char> content(bytes);
    std::size_t next = 0;
    for (auto& [group, segment] : layout.segments()) {
      segment.Addr = ExecutorAddr::fromPtr(outcome_.memory->address() + offsets[next]);
      segment.WorkingMem = content.data() + offsets[next++];
    }
    if (auto failure = layout.apply()) return failure;
    return std::make_unique<InFlight>(outcome_, std::move(content));
  }

  Outcome& outcome_;
};

class Context final : public jitlink::JITLinkContext {
 public:
  explicit Context(Outcome& outcome) : JITLinkContext(nullptr), outcome_(outcome), memory_(outcome) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }
  void notifyFailed(llvm::Error failure) override { outcome_.problem = llvm::toString(std::move(failure)); }

  void lookup(const LookupMap& names, std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> found) override {
    jitlink::AsyncLookupResult addresses;
    for (const auto& [name, how] : names) {
      void* address = routine_address(name.str());
      if (!address) return found->run(llvm::createStringError("generated code calls " + name.str() + ", which it may not"));
      addresses[name] = {ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    found->run(std::move(addresses));
  }

  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    for (jitlink::Symbol* symbol : graph.defined_symbols())
      if (symbol->hasName() && symbol->isCallable()) outcome_.functions.try_emplace(symbol->getName().str(), symbol->getAddress().toPtr<void*>(), symbol->getSize());
    return llvm::Error::success();
  }
  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override { allocation.release(); }

 private:
  Outcome& outcome_;
  OnePiece memory_;
};

}  // namespace

LinkedCode link(const ObjectCode& object, const std::vector<std::string>& names) {
  Outcome outcome;
  auto graph = jitlink::createLinkGraphFromELFObject_x86_64(llvm::MemoryBufferRef(object, "kernels"));
  if (!graph) throw Exception(Code::internal, "generated code is no object: " + llvm::toString(graph.takeError()));
  jitlink::link_ELF_x86_64(std::move(*graph), std::make_unique<Context>(outcome));  // done when it returns: nothing here waits
  if (!outcome.problem.empty()) throw Exception(Code::internal, "linking generated code: " + outcome.problem);
  LinkedCode code;
  for (const std::string& name : names) {
    const auto found = outcome.functions.find(name);
    if (found == outcome.functions.end()) throw Exception(Code::internal, "linking generated code: there is no " + name);
    code.functions.push_back(found->second.first);
    code.sizes.push_back(found->second.second);
  }
  code.memory = std::move(outcome.memory);
  return code;
}

}  // namespace tenon::llvm_backend
