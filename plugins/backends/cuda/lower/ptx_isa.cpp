#include "lower/ptx_isa.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "isa/ptx_functions.h"

namespace tenon::cuda {

using codegen::LaneBuilder;
using llvm::Value;

namespace {

constexpr unsigned kShared = 3;  // an address space
/// Of products, where there are more than multiprocessors: on one of these, where one computes while the other waits.
constexpr std::uint32_t kBlocksAtOnce = 2;
constexpr std::int64_t kManyBlocks = 133;
constexpr std::int32_t kAllThreads = -1, kWholeWarp = 31;

}  // namespace

int PtxIsa::number_of(const std::string& architecture) { return std::stoi(architecture.substr(architecture.find('_') + 1)); }

/// What comes behind may start when this ends, before its memory is written back: earlier starts only take room from it.
void PtxIsa::begin(LaneBuilder& b) const {
  if (!waits_) return;
  auto* type = llvm::FunctionType::get(b.ir.getVoidTy(), {}, false);
  b.ir.CreateCall(type, llvm::InlineAsm::get(type, "griddepcontrol.wait;", "~{memory}", true));
}

void PtxIsa::declare(llvm::Function& function) const { function.addFnAttr(llvm::Attribute::NoUnwind); }

Value* PtxIsa::function(LaneBuilder& b, ops::Primitive p, Value* x, Value* y) const { return emit_ptx_function(b, p, x, y); }

llvm::Function* PtxIsa::make_kernel(LaneBuilder& b, const codegen::Kernel& kernel, const Schedule& schedule, const std::string& name) const {
  auto& context = b.ir.getContext();
  const bool has_table = schedule.runs > 1;
  std::vector<llvm::Type*> parameters(has_table ? 1 : memory_buffers(kernel), llvm::PointerType::get(context, has_table ? 0 : global_memory()));
  for (std::size_t i = 0; i < parameters.size() && !has_table; ++i)
    if (schedule.is_number(i)) parameters[i] = b.ir.getInt64Ty();
  parameters.insert(parameters.end(), schedule.symbols.size(), b.ir.getInt64Ty());
  auto* function = llvm::Function::Create(llvm::FunctionType::get(b.ir.getVoidTy(), parameters, false), llvm::Function::ExternalLinkage, name, b.module());
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  declare(*function);
  if (has_table) {
    function->addParamAttr(0, llvm::Attribute::getWithByValType(context, llvm::ArrayType::get(b.ir.getInt64Ty(), schedule.runs * memory_buffers(kernel))));
    function->addParamAttr(0, llvm::Attribute::getWithAlignment(context, llvm::Align(sizeof(std::uint64_t))));
  }
  for (unsigned i = 0; i < memory_buffers(kernel) && !has_table; ++i)
    if (!schedule.is_number(i)) function->addParamAttr(i, llvm::Attribute::getWithAlignment(context, llvm::Align(schedule.alignments[i])));
  const auto note = [&](const char* what, std::uint32_t number) -> llvm::Metadata* {
    return llvm::MDNode::get(context, {llvm::ConstantAsMetadata::get(function), llvm::MDString::get(context, what), llvm::ConstantAsMetadata::get(b.ir.getInt32(number))});
  };
  llvm::NamedMDNode* notes = b.module().getOrInsertNamedMetadata("nvvm.annotations");
  std::vector<llvm::Metadata*> all{note("kernel", 1), note("maxntidx", kBlock)};
  if (schedule.product && schedule.product->blocks() >= kManyBlocks) all.push_back(note("minctasm", kBlocksAtOnce));
  for (llvm::Metadata* said : all) notes->addOperand(llvm::cast<llvm::MDNode>(said));
  return function;
}

Value* PtxIsa::buffer(LaneBuilder&, llvm::Function& kernel, std::size_t number) const { return kernel.getArg(static_cast<unsigned>(number)); }

Value* PtxIsa::number(LaneBuilder&, llvm::Function& kernel, std::size_t number) const { return kernel.getArg(static_cast<unsigned>(number)); }

Value* PtxIsa::in_table(LaneBuilder& b, llvm::Function& kernel, Value* entry) const {
  return b.ir.CreateLoad(b.ir.getInt64Ty(), b.ir.CreateGEP(b.ir.getInt64Ty(), kernel.getArg(0), entry));
}

Value* PtxIsa::symbol(LaneBuilder&, llvm::Function& kernel, std::size_t before, std::size_t number) const {
  return kernel.getArg(static_cast<unsigned>(before + number));
}

Value* PtxIsa::block_number(LaneBuilder& b) const { return b.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {}); }

Value* PtxIsa::thread_number(LaneBuilder& b) const { return b.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {}); }

Value* PtxIsa::from_further(LaneBuilder& b, Value* bits, unsigned distance) const {
  return b.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_down_i32, {}, {b.ir.getInt32(kAllThreads), bits, b.ir.getInt32(distance), b.ir.getInt32(kWholeWarp)});
}

Value* PtxIsa::from_other(LaneBuilder& b, Value* bits, unsigned differs) const {
  return b.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {}, {b.ir.getInt32(kAllThreads), bits, b.ir.getInt32(differs), b.ir.getInt32(kWholeWarp)});
}

Value* PtxIsa::from_first(LaneBuilder& b, Value* bits) const {
  return b.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {}, {b.ir.getInt32(kAllThreads), bits, b.ir.getInt32(0), b.ir.getInt32(kWholeWarp)});
}

/// No branch, so that values may be computed anywhere.
void PtxIsa::fail_where(LaneBuilder& b, Value* condition) const {
  auto* type = llvm::FunctionType::get(b.ir.getVoidTy(), {b.ir.getInt32Ty()}, false);
  auto* trap = llvm::InlineAsm::get(type, "{ .reg .pred fails; setp.ne.u32 fails, $0, 0; @fails trap; }", "r", true);
  b.ir.CreateCall(type, trap, {b.ir.CreateZExt(condition, b.ir.getInt32Ty())});
}

void PtxIsa::meet(LaneBuilder& b) const { b.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }

/// One variable a kernel, as large as the largest that it asks for: all that it stores there it finds there.
Value* PtxIsa::shared_memory(LaneBuilder& b, std::size_t words) const {
  const std::string name = b.ir.GetInsertBlock()->getParent()->getName().str() + "_shared";
  auto* known = b.module().getNamedGlobal(name);
  if (known && known->getValueType()->getArrayNumElements() >= words) return known;
  auto* type = llvm::ArrayType::get(b.ir.getInt64Ty(), words);
  auto* made = new llvm::GlobalVariable(b.module(), type, false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type), name, nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
  if (known) {
    made->takeName(known);
    known->replaceAllUsesWith(made);
    known->eraseFromParent();
  }
  return made;
}

}  // namespace tenon::cuda
