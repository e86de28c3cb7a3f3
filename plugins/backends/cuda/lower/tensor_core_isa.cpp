// What the instruction set has for products of matrices.
#include <fmt/format.h>

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "lower/ptx_isa.h"

namespace tenon::cuda {

using codegen::LaneBuilder;
using llvm::Value;

namespace {

constexpr unsigned kSharedSpace = 3;  // an address space

Value* call(LaneBuilder& b, llvm::Type* result, std::span<Value* const> arguments, const std::string& code, const std::string& constraints, bool has_effects) {
  std::vector<llvm::Type*> types;
  for (Value* v : arguments) types.push_back(v->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  return b.ir.CreateCall(type, llvm::InlineAsm::get(type, code, constraints, has_effects), std::vector<Value*>(arguments.begin(), arguments.end()));
}

Value* address_in_shared(LaneBuilder& b, Value* pointer) { return b.ir.CreatePtrToInt(pointer, b.ir.getInt32Ty()); }

std::vector<Value*> fields(LaneBuilder& b, Value* record, unsigned count) {
  std::vector<Value*> all;
  for (unsigned i = 0; i < count; ++i) all.push_back(b.ir.CreateExtractValue(record, i));
  return all;
}

/// A matrix descriptor: rows of 128 bytes, swizzled, eight of them 1024 bytes before the next eight.
Value* rows_in_shared(LaneBuilder& b, Value* pointer) {
  constexpr std::uint64_t kSwizzled = std::uint64_t{1} << 62 | std::uint64_t{1024 / 16} << 32 | std::uint64_t{1} << 16;
  Value* at = b.ir.CreateLShr(address_in_shared(b, pointer), 4);
  return b.ir.CreateOr(b.ir.CreateZExt(at, b.ir.getInt64Ty()), b.ir.getInt64(kSwizzled));
}

}  // namespace

Value* PtxIsa::large_shared_memory(LaneBuilder& b, std::size_t, unsigned alignment) const {
  const std::string name = b.ir.GetInsertBlock()->getParent()->getName().str() + "_block";
  auto* type = llvm::ArrayType::get(b.ir.getInt8Ty(), 0);
  auto* made = new llvm::GlobalVariable(b.module(), type, false, llvm::GlobalValue::ExternalLinkage, nullptr, name, nullptr, llvm::GlobalValue::NotThreadLocal, kSharedSpace);
  made->setAlignment(llvm::Align(alignment));
  return made;
}

void PtxIsa::copy_to_shared(LaneBuilder& b, Value* to, Value* from, unsigned bytes, Value* inside) const {
  std::vector<Value*> arguments{address_in_shared(b, to), from};
  std::string code = fmt::format("cp.async.{}.shared.global [$0], [$1], {}", bytes == 16 ? "cg" : "ca", bytes), constraints = "r,l";
  if (inside) arguments.push_back(b.ir.CreateSelect(inside, b.ir.getInt32(bytes), b.ir.getInt32(0))), code += ", $2", constraints += ",r";
  call(b, b.ir.getVoidTy(), arguments, code + ";", constraints + ",~{memory}", true);
}

void PtxIsa::commit_copies(LaneBuilder& b) const { call(b, b.ir.getVoidTy(), {}, "cp.async.commit_group;", "~{memory}", true); }

void PtxIsa::wait_for_copies(LaneBuilder& b, unsigned groups) const { call(b, b.ir.getVoidTy(), {}, fmt::format("cp.async.wait_group {};", groups), "~{memory}", true); }

std::vector<Value*> PtxIsa::load_matrices(LaneBuilder& b, Value* address, bool transposed) const {
  auto* word = b.ir.getInt32Ty();
  auto* four = llvm::StructType::get(word, word, word, word);
  Value* at[] = {address_in_shared(b, address)};
  const std::string code = fmt::format("ldmatrix.sync.aligned.m8n8.x4{}.shared.b16 {{$0, $1, $2, $3}}, [$4];", transposed ? ".trans" : "");
  return fields(b, call(b, four, at, code, "=r,=r,=r,=r,r,~{memory}", true), 4);
}

std::vector<Value*> PtxIsa::multiply(LaneBuilder& b, DType dtype, std::span<Value* const> left, std::span<Value* const> right, std::span<Value* const> sums) const {
  std::vector<Value*> arguments(left.begin(), left.end());
  arguments.insert(arguments.end(), right.begin(), right.end());
  arguments.insert(arguments.end(), sums.begin(), sums.end());
  const std::string_view type = dtype == DType::f32 ? "tf32" : name_of(dtype);
  const std::string code = fmt::format("mma.sync.aligned.m16n8k{}.row.col.f32.{}.{}.f32 {{$0, $1, $2, $3}}, {{$4, $5, $6, $7}}, {{$8, $9}}, {{$10, $11, $12, $13}};", 32 / size_of(dtype), type, type);
  auto* number = b.ir.getFloatTy();
  return fields(b, call(b, llvm::StructType::get(number, number, number, number), arguments, code, "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f", false), 4);
}

Value* PtxIsa::packed(LaneBuilder& b, DType dtype, Value* low, Value* high) const {
  Value* both[] = {high, low};
  return call(b, b.ir.getInt32Ty(), both, fmt::format("cvt.rn.{}x2.f32 $0, $1, $2;", name_of(dtype)), "=r,f,f", false);
}

Value* PtxIsa::power_of_two(LaneBuilder& b, Value* x) const {
  Value* arguments[] = {x};
  return call(b, b.ir.getFloatTy(), arguments, "ex2.approx.ftz.f32 $0, $1;", "=f,f", false);
}

std::vector<Value*> PtxIsa::wait_for_warpgroup(LaneBuilder& b, std::span<Value* const> sums) const {
  std::string constraints;
  for (std::size_t i = 0; i < sums.size(); ++i) constraints += "=f,";
  for (std::size_t i = 0; i < sums.size(); ++i) constraints += fmt::format("{},", i);
  auto* record = llvm::StructType::get(b.ir.getContext(), std::vector<llvm::Type*>(sums.size(), b.ir.getFloatTy()));
  return fields(b, call(b, record, sums, "wgmma.wait_group.sync.aligned 0;", constraints + "~{memory}", true), static_cast<unsigned>(sums.size()));
}

void PtxIsa::show_to_warpgroups(LaneBuilder& b) const { call(b, b.ir.getVoidTy(), {}, "fence.proxy.async.shared::cta;", "~{memory}", true); }

/// See the PTX ISA, "asynchronous warpgroup level matrix instructions".
std::vector<Value*> PtxIsa::multiply_by_warpgroup(LaneBuilder& b, DType dtype, std::span<const WarpgroupOperands> operands, std::span<Value* const> sums) const {
  std::string constraints, all_sums, code = "{ .reg .b64 a, b; wgmma.fence.sync.aligned; ";
  for (std::size_t i = 0; i < sums.size(); ++i) constraints += "=f,", all_sums += fmt::format("{}${}", i == 0 ? "" : ", ", i);
  std::vector<Value*> arguments;
  const auto add = [&](Value* argument, const char* constraint) {
    arguments.push_back(argument), constraints += constraint;
    return sums.size() + arguments.size() - 1;
  };
  for (const WarpgroupOperands& each : operands) {
    const bool in_registers = !each.left.empty();
    std::size_t first = 0;
    for (std::size_t i = 0; i < each.left.size(); ++i)
      if (const std::size_t at = add(each.left[i], "r,"); i == 0) first = at;
    if (!in_registers) first = add(rows_in_shared(b, each.rows), "l,");
    const std::size_t columns = add(rows_in_shared(b, each.columns), "l,");
    const std::string type = dtype == DType::f32 ? "tf32" : std::string(name_of(dtype)), order = dtype == DType::f32 ? "" : in_registers ? ", 0" : ", 0, 0";
    for (unsigned part = 0; part < each.parts; ++part) {
      const std::size_t at = first + 4 * part;
      const std::string left = in_registers ? fmt::format("{{${}, ${}, ${}, ${}}}", at, at + 1, at + 2, at + 3) : "a";
      if (!in_registers) code += fmt::format("add.s64 a, ${}, {}; ", first, 2 * part);
      code += fmt::format("add.s64 b, ${}, {}; wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} {{{}}}, {}, b, 1, 1, 1{}; ", columns, 2 * part, 2 * sums.size(), 32 / size_of(dtype), type, type, all_sums, left, order);
    }
  }
  code += "wgmma.commit_group.sync.aligned; }";
  for (std::size_t i = 0; i < sums.size(); ++i) constraints += fmt::format("{},", i);
  arguments.insert(arguments.end(), sums.begin(), sums.end());
  auto* record = llvm::StructType::get(b.ir.getContext(), std::vector<llvm::Type*>(sums.size(), b.ir.getFloatTy()));
  return fields(b, call(b, record, arguments, code, constraints + "~{memory}", true), static_cast<unsigned>(sums.size()));
}

Value* PtxIsa::any_of_block(LaneBuilder& b, Value* condition) const {
  Value* any = b.ir.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0_or, {}, {b.ir.CreateZExt(condition, b.ir.getInt32Ty())});
  return b.ir.CreateICmpNE(any, b.ir.getInt32(0));
}

void PtxIsa::meet_cluster(LaneBuilder& b) const {
  call(b, b.ir.getVoidTy(), {}, "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;", "~{memory}", true);
}

Value* PtxIsa::number_in_cluster(LaneBuilder& b) const { return call(b, b.ir.getInt32Ty(), {}, "mov.u32 $0, %cluster_ctarank;", "=r", false); }

std::vector<Value*> PtxIsa::load_from_cluster(LaneBuilder& b, Value* address, unsigned block, unsigned count) const {
  Value* place[] = {address_in_shared(b, address), b.ir.getInt32(block)};
  Value* there[] = {call(b, b.ir.getInt32Ty(), place, "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", false)};
  auto* number = b.ir.getFloatTy();
  if (count == 1) return {call(b, number, there, "ld.shared::cluster.f32 $0, [$1];", "=f,r,~{memory}", true)};
  auto* all = llvm::StructType::get(b.ir.getContext(), std::vector<llvm::Type*>(count, number));
  const std::string code = count == 2 ? "ld.shared::cluster.v2.f32 {$0, $1}, [$2];" : "ld.shared::cluster.v4.f32 {$0, $1, $2, $3}, [$4];";
  return fields(b, call(b, all, there, code, count == 2 ? "=f,=f,r,~{memory}" : "=f,=f,=f,=f,r,~{memory}", true), count);
}

}  // namespace tenon::cuda
