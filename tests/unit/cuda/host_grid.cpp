#include "unit/cuda/host_grid.h"

#include <array>
#include <atomic>
#include <barrier>
#include <bit>
#include <cstring>
#include <thread>

#include "compile/jit.h"
#include "compile/machine.h"
#include "core/base/error.h"
#include "core/ops/reference/sample.h"
#include "scalars/functions.h"
#include "products/product_emitter.h"
#include "isa/x86_isa.h"

namespace tenon::ptx_test {
namespace {

using codegen::LaneBuilder;
using llvm::Value;

constexpr unsigned kWarpgroup = 4 * cuda::kWarp;

/// What the threads of a block have in common.
struct HostBlock {
  std::array<std::uint32_t, cuda::kBlock> words{};
  std::array<const char*, cuda::kBlock> addresses{};
  std::array<std::array<std::uint32_t, 6>, cuda::kBlock> fragments{};
  std::array<std::array<std::uint32_t, 16>, cuda::kBlock> wide_fragments{};
  alignas(cuda::kSwizzleAlignment) std::array<char, 112 * 1024> large{};
  std::array<std::uint64_t, cuda::kSharedBytes / sizeof(std::uint64_t)> shared{};
  std::barrier<> all{cuda::kBlock};
  std::atomic<bool> failed{false};
  std::atomic<std::uint32_t> votes{0};
  std::vector<std::unique_ptr<std::barrier<>>> warps, warpgroups;

  HostBlock() {
    for (unsigned w = 0; w < cuda::kBlock / kWarpgroup; ++w) warpgroups.push_back(std::make_unique<std::barrier<>>(kWarpgroup));
    for (unsigned w = 0; w < cuda::kBlock / cuda::kWarp; ++w) warps.push_back(std::make_unique<std::barrier<>>(cuda::kWarp));
  }
};

/// As `WarpgroupOperands`; `words` is null where the left operand lies at `rows`.
struct WideProduct {
  const std::uint32_t* words;
  const char *rows, *columns;
  std::uint32_t parts, sums, dtype;
};

/// What a kernel is given for one thread; generated code reads its fields by number.
struct HostThread {
  std::uint32_t block, thread;
  std::uint32_t (*from)(HostThread*, std::uint32_t bits, std::uint32_t other);
  void (*meet)(HostThread*);
  void* shared;
  void (*fail)(HostThread*, std::uint32_t fails);
  HostBlock* around;
  void* large;
  void (*copy)(void* to, const void* from, std::uint32_t bytes, std::uint32_t inside);
  void (*load_matrices)(HostThread*, const void* address, std::uint32_t transposed, std::uint32_t* words);
  void (*multiply)(HostThread*, std::uint32_t dtype, const std::uint32_t* fragments, float* sums);
  std::uint32_t (*any)(HostThread*, std::uint32_t holds);
  void (*multiply_wide)(HostThread*, const WideProduct*, float* sums);
};

std::uint32_t word_from(HostThread* self, std::uint32_t bits, std::uint32_t other) {
  HostBlock& block = *self->around;
  std::barrier<>& warp = *block.warps[self->thread / cuda::kWarp];
  block.words[self->thread] = bits;
  warp.arrive_and_wait();
  const std::uint32_t lane = self->thread % cuda::kWarp, first = self->thread - lane;
  const std::uint32_t found = other < cuda::kWarp ? block.words[first + other] : bits;
  warp.arrive_and_wait();
  return found;
}

void copy_bytes(void* to, const void* from, std::uint32_t bytes, std::uint32_t inside) {
  inside ? std::memcpy(to, from, bytes) : std::memset(to, 0, bytes);
}

void load_four_matrices(HostThread* self, const void* address, std::uint32_t transposed, std::uint32_t* words) {
  HostBlock& block = *self->around;
  std::barrier<>& warp = *block.warps[self->thread / cuda::kWarp];
  const std::uint32_t lane = self->thread % cuda::kWarp, first = self->thread - lane, row = lane / 4, word = lane % 4;
  block.addresses[self->thread] = static_cast<const char*>(address);
  warp.arrive_and_wait();
  for (std::uint32_t matrix = 0; matrix < 4; ++matrix) {
    const auto* rows = &block.addresses[first + 8 * matrix];
    auto* to = reinterpret_cast<char*>(&words[matrix]);
    if (!transposed) std::memcpy(to, rows[row] + 4 * word, 4);
    else for (std::uint32_t i = 0; i < 2; ++i) std::memcpy(to + 2 * i, rows[2 * word + i] + 2 * row, 2);
  }
  warp.arrive_and_wait();
}

/// Number `i` of a word of so many bytes each, as tensor cores take it: of float32 what tf32 has of it.
float number_in(std::uint32_t word, DType dtype, std::uint32_t i) {
  if (dtype == DType::f32) return std::bit_cast<float>(word & 0xffffe000u);
  const auto bits = static_cast<std::uint16_t>(word >> (16 * i));
  return dtype == DType::bf16 ? std::bit_cast<float>(std::uint32_t{bits} << 16) : static_cast<float>(std::bit_cast<_Float16>(bits));
}

/// 16 x 8 sums of a warp, over 32 bytes: fragments as PTX has them for m16n8k8 and m16n8k16.
void multiply_fragments(HostThread* self, std::uint32_t type, const std::uint32_t* mine, float* sums) {
  HostBlock& block = *self->around;
  const auto dtype = static_cast<DType>(type);
  std::barrier<>& warp = *block.warps[self->thread / cuda::kWarp];
  const std::uint32_t lane = self->thread % cuda::kWarp, first = self->thread - lane, in_word = 4 / static_cast<std::uint32_t>(size_of(dtype)), in_matrix = 4 * in_word;
  std::memcpy(block.fragments[self->thread].data(), mine, sizeof block.fragments[0]);
  warp.arrive_and_wait();
  for (std::uint32_t i = 0; i < 4; ++i)
    for (std::uint32_t k = 0; k < 2 * in_matrix; ++k) {
      const std::uint32_t row = lane / 4, column = lane % 4 * 2 + i % 2, word = k % in_matrix / in_word;
      const std::uint32_t a = block.fragments[first + row * 4 + word][i / 2 + 2 * (k / in_matrix)], b = block.fragments[first + column * 4 + word][4 + k / in_matrix];
      sums[i] += number_in(a, dtype, k % in_word) * number_in(b, dtype, k % in_word);
    }
  warp.arrive_and_wait();
}

/// Byte `byte` of the row of what is swizzled: addresses decide, as they do on a card.
const char* swizzled(const char* start, std::uint32_t row, std::uint32_t byte) {
  const auto plain = reinterpret_cast<std::uintptr_t>(start) + row * 128 + byte;
  return reinterpret_cast<const char*>(plain ^ (plain / 128 % 8 * 16));
}

void multiply_by_warpgroup(HostThread* self, const WideProduct* product, float* sums) {
  HostBlock& block = *self->around;
  const auto dtype = static_cast<DType>(product->dtype);
  std::barrier<>& warpgroup = *block.warpgroups[self->thread / kWarpgroup];
  const std::uint32_t lane = self->thread % cuda::kWarp, first = self->thread - lane, warp = self->thread % kWarpgroup / cuda::kWarp;
  const std::uint32_t in_word = 4 / static_cast<std::uint32_t>(size_of(dtype)), in_matrix = 4 * in_word, in_part = 2 * in_matrix;
  if (product->words) std::memcpy(block.wide_fragments[self->thread].data(), product->words, 16 * product->parts);
  warpgroup.arrive_and_wait();
  const auto word_at = [&](const char* start, std::uint32_t row, std::uint32_t k) {
    std::uint32_t word = 0;
    std::memcpy(&word, swizzled(start, row, k / in_word * 4), 4);
    return word;
  };
  const auto left = [&](std::uint32_t row, std::uint32_t k) {
    if (!product->words) return word_at(product->rows, 16 * warp + row, k);
    const std::uint32_t within = k % in_part;
    return block.wide_fragments[first + row % 8 * 4 + within % in_matrix / in_word][4 * (k / in_part) + row / 8 + 2 * (within / in_matrix)];
  };
  for (std::uint32_t i = 0; i < product->sums; ++i)
    for (std::uint32_t k = 0; k < product->parts * in_part; ++k) {
      const std::uint32_t row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      sums[i] += number_in(left(row, k), dtype, k % in_word) * number_in(word_at(product->columns, column, k), dtype, k % in_word);
    }
  warpgroup.arrive_and_wait();
}

/// Votes are counted from one call to the next.
std::uint32_t any_vote(HostThread* self, std::uint32_t holds) {
  HostBlock& block = *self->around;
  const std::uint32_t before = block.votes;
  block.all.arrive_and_wait();
  block.votes += holds;
  block.all.arrive_and_wait();
  return block.votes != before ? 1 : 0;
}

void note_failure(HostThread* self, std::uint32_t fails) {
  if (fails) self->around->failed = true;
}

void meet_all(HostThread* self) { self->around->all.arrive_and_wait(); }

/// The instruction set of the GPU as far as arithmetic goes, on threads of the host.
class HostGrid final : public cuda::PtxIsa {
 public:
  explicit HostGrid(const llvm_backend::Target& target) : target_(target) {}

  void declare(llvm::Function& function) const override { llvm_backend::declare_for_machine(function, target_); }
  unsigned global_memory() const override { return 0; }

  llvm::Function* make_kernel(LaneBuilder& b, const codegen::Kernel&, const cuda::Schedule&, const std::string& name) const override {
    auto* pointer = b.ir.getPtrTy();
    auto* type = llvm::FunctionType::get(b.ir.getVoidTy(), {pointer, pointer, pointer}, false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, b.module());
    declare(*function);
    return function;
  }
  Value* buffer(LaneBuilder& b, llvm::Function& kernel, std::size_t number) const override {
    return b.ir.CreateLoad(b.ir.getPtrTy(), b.ir.CreateConstGEP1_64(b.ir.getPtrTy(), kernel.getArg(0), number));
  }
  Value* in_table(LaneBuilder& b, llvm::Function& kernel, Value* entry) const override {
    return b.ir.CreateLoad(b.ir.getInt64Ty(), b.ir.CreateGEP(b.ir.getInt64Ty(), kernel.getArg(0), entry));
  }
  Value* symbol(LaneBuilder& b, llvm::Function& kernel, std::size_t, std::size_t number) const override {
    return b.ir.CreateLoad(b.ir.getInt64Ty(), b.ir.CreateConstGEP1_64(b.ir.getInt64Ty(), kernel.getArg(1), number));
  }
  Value* block_number(LaneBuilder& b) const override { return field(b, 0, b.ir.getInt32Ty()); }
  Value* thread_number(LaneBuilder& b) const override { return field(b, 1, b.ir.getInt32Ty()); }
  Value* from_further(LaneBuilder& b, Value* bits, unsigned distance) const override {
    Value* lane = b.ir.CreateURem(thread_number(b), b.ir.getInt32(cuda::kWarp));
    return from(b, bits, b.ir.CreateAdd(lane, b.ir.getInt32(distance)));
  }
  Value* from_other(LaneBuilder& b, Value* bits, unsigned differs) const override {
    Value* lane = b.ir.CreateURem(thread_number(b), b.ir.getInt32(cuda::kWarp));
    return from(b, bits, b.ir.CreateXor(lane, b.ir.getInt32(differs)));
  }
  Value* packed(LaneBuilder& b, DType dtype, Value* low, Value* high) const override {
    const auto half = [&](Value* v) { return b.ir.CreateZExt(b.ir.CreateBitCast(b.to_storage({v, DType::f32, false}, dtype), b.ir.getInt16Ty()), b.ir.getInt32Ty()); };
    return b.ir.CreateOr(half(low), b.ir.CreateShl(half(high), 16));
  }
  Value* power_of_two(LaneBuilder& b, Value* x) const override {
    return codegen::emit_function(b, ops::Primitive::exp, b.ir.CreateFMul(x, llvm::ConstantFP::get(b.ir.getFloatTy(), 0.69314718055994531)), nullptr);
  }
  Value* from_first(LaneBuilder& b, Value* bits) const override { return from(b, bits, b.ir.getInt32(0)); }
  void meet(LaneBuilder& b) const override {
    auto* type = llvm::FunctionType::get(b.ir.getVoidTy(), {b.ir.getPtrTy()}, false);
    b.ir.CreateCall(type, field(b, 3, b.ir.getPtrTy()), {self(b)});
  }
  void fail_where(LaneBuilder& b, Value* condition) const override {
    auto* word = b.ir.getInt32Ty();
    auto* type = llvm::FunctionType::get(b.ir.getVoidTy(), {b.ir.getPtrTy(), word}, false);
    b.ir.CreateCall(type, field(b, 5, b.ir.getPtrTy()), {self(b), b.ir.CreateZExt(condition, word)});
  }
  Value* shared_memory(LaneBuilder& b, std::size_t words) const override {
    TENON_CHECK(words <= std::tuple_size_v<decltype(HostBlock::shared)>, "a block shares too much");
    return field(b, 4, b.ir.getPtrTy());
  }

  Value* large_shared_memory(LaneBuilder& b, std::size_t bytes, unsigned) const override {
    TENON_CHECK(bytes <= std::tuple_size_v<decltype(HostBlock::large)>, "a block shares too much");
    return field(b, 7, b.ir.getPtrTy());
  }
  void copy_to_shared(LaneBuilder& b, Value* to, Value* from, unsigned bytes, Value* inside) const override {
    Value* holds = inside ? b.ir.CreateZExt(inside, b.ir.getInt32Ty()) : b.ir.getInt32(1);
    call(b, 8, {to, from, b.ir.getInt32(bytes), holds});
  }
  void commit_copies(LaneBuilder&) const override {}
  void wait_for_copies(LaneBuilder&, unsigned) const override {}
  std::vector<Value*> load_matrices(LaneBuilder& b, Value* address, bool transposed) const override {
    Value* words = scratch(b, b.ir.getInt32Ty(), 4);
    call(b, 9, {self(b), address, b.ir.getInt32(transposed), words});
    return elements(b, b.ir.getInt32Ty(), words, 4);
  }
  std::vector<Value*> multiply(LaneBuilder& b, DType dtype, std::span<Value* const> left, std::span<Value* const> right, std::span<Value* const> sums) const override {
    Value *fragments = scratch(b, b.ir.getInt32Ty(), 6), *made = scratch(b, b.ir.getFloatTy(), 4);
    const auto put = [&](std::span<Value* const> values, Value* to, unsigned first) {
      for (unsigned i = 0; i < values.size(); ++i) b.ir.CreateStore(values[i], b.ir.CreateConstGEP1_64(values[i]->getType(), to, first + i));
    };
    put(left, fragments, 0), put(right, fragments, 4), put(sums, made, 0);
    call(b, 10, {self(b), b.ir.getInt32(static_cast<std::uint32_t>(dtype)), fragments, made});
    return elements(b, b.ir.getFloatTy(), made, 4);
  }
  void show_to_warpgroups(LaneBuilder&) const override {}
  std::vector<Value*> multiply_by_warpgroup(LaneBuilder& b, DType dtype, std::span<const WarpgroupOperands> all, std::span<Value* const> sums) const override {
    const auto count = static_cast<unsigned>(sums.size());
    auto* pointer = b.ir.getPtrTy();
    auto* word = b.ir.getInt32Ty();
    Value* made = scratch(b, b.ir.getFloatTy(), count);
    for (unsigned i = 0; i < count; ++i) b.ir.CreateStore(sums[i], b.ir.CreateConstGEP1_64(b.ir.getFloatTy(), made, i));
    for (const WarpgroupOperands& operands : all) {
      const auto words = static_cast<unsigned>(operands.left.size());
      Value* left = words > 0 ? scratch(b, word, words) : llvm::ConstantPointerNull::get(pointer);
      for (unsigned i = 0; i < words; ++i) b.ir.CreateStore(operands.left[i], b.ir.CreateConstGEP1_64(word, left, i));
      auto* record = llvm::StructType::get(b.ir.getContext(), {pointer, pointer, pointer, word, word, word});
      Value* product = scratch(b, record, 1);
      Value* const values[] = {left, words > 0 ? llvm::ConstantPointerNull::get(pointer) : operands.rows, operands.columns, b.ir.getInt32(operands.parts), b.ir.getInt32(count), b.ir.getInt32(static_cast<std::uint32_t>(dtype))};
      for (unsigned i = 0; i < std::size(values); ++i) b.ir.CreateStore(values[i], b.ir.CreateStructGEP(record, product, i));
      call(b, 12, {self(b), product, made});
    }
    return elements(b, b.ir.getFloatTy(), made, count);
  }
  std::vector<Value*> wait_for_warpgroup(LaneBuilder&, std::span<Value* const> sums) const override { return {sums.begin(), sums.end()}; }
  Value* any_of_block(LaneBuilder& b, Value* condition) const override {
    auto* word = b.ir.getInt32Ty();
    auto* type = llvm::FunctionType::get(word, {b.ir.getPtrTy(), word}, false);
    return b.ir.CreateICmpNE(b.ir.CreateCall(type, field(b, 11, b.ir.getPtrTy()), {self(b), b.ir.CreateZExt(condition, word)}), b.ir.getInt32(0));
  }

 private:
  static Value* self(LaneBuilder& b) { return b.ir.GetInsertBlock()->getParent()->getArg(2); }
  static Value* field(LaneBuilder& b, unsigned number, llvm::Type* type) {
    auto* pointer = b.ir.getPtrTy();
    std::vector<llvm::Type*> fields{b.ir.getInt32Ty(), b.ir.getInt32Ty()};
    fields.resize(13, pointer);
    auto* record = llvm::StructType::get(b.ir.getContext(), fields);
    return b.ir.CreateLoad(type, b.ir.CreateStructGEP(record, self(b), number));
  }
  static void call(LaneBuilder& b, unsigned function, std::initializer_list<Value*> arguments) {
    std::vector<llvm::Type*> types;
    for (Value* v : arguments) types.push_back(v->getType());
    b.ir.CreateCall(llvm::FunctionType::get(b.ir.getVoidTy(), types, false), field(b, function, b.ir.getPtrTy()), std::vector<Value*>(arguments));
  }
  static Value* scratch(LaneBuilder& b, llvm::Type* type, unsigned count) {
    llvm::BasicBlock& entry = b.ir.GetInsertBlock()->getParent()->getEntryBlock();
    return llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(llvm::ArrayType::get(type, count));
  }
  static std::vector<Value*> elements(LaneBuilder& b, llvm::Type* type, Value* from, unsigned count) {
    std::vector<Value*> all;
    for (unsigned i = 0; i < count; ++i) all.push_back(b.ir.CreateLoad(type, b.ir.CreateConstGEP1_64(type, from, i)));
    return all;
  }
  static Value* from(LaneBuilder& b, Value* bits, Value* other) {
    auto* word = b.ir.getInt32Ty();
    auto* type = llvm::FunctionType::get(word, {b.ir.getPtrTy(), word, word}, false);
    return b.ir.CreateCall(type, field(b, 2, b.ir.getPtrTy()), {self(b), bits, other});
  }

  const llvm_backend::Target& target_;
};

using HostKernel = void (*)(void* const* buffers, const std::int64_t* symbols, HostThread* thread);

void run_block(HostKernel kernel, void* const* buffers, const std::int64_t* symbols, std::uint32_t number, bool talks) {
  const auto memory = std::make_unique<HostBlock>();
  HostBlock& block = *memory;
  const auto run = [&](std::uint32_t thread) {
    HostThread self{number, thread, word_from, meet_all, block.shared.data(), note_failure, &block, block.large.data(), copy_bytes, load_four_matrices, multiply_fragments, any_vote, multiply_by_warpgroup};
    kernel(buffers, symbols, &self);
  };
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < cuda::kBlock; ++t) {
    if (talks) threads.emplace_back(run, t);
    else run(t);
  }
  for (std::thread& t : threads) t.join();
  if (block.failed) throw Exception(error(Code::invalid_argument, "an index is out of bounds"));
}

/// The memory of a graph's values while it runs.
class HostValues {
 public:
  HostValues(const ScheduledGraph& scheduled, std::span<const ops::TensorView> inputs) : graph_(scheduled.graph), temporaries_(scheduled.plan.temporaries), symbols_(graph_.symbols().size(), 0) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto& shape = graph_.type(graph_.inputs()[i]).shape;
      for (std::size_t d = 0; d < shape.size(); ++d)
        if (SymbolId s = shape[d].as_symbol()) symbols_[s.value] = inputs[i].shape[d];
      memory_[graph_.inputs()[i].value] = const_cast<void*>(static_cast<const void*>(inputs[i].data));
    }
  }

  std::span<const std::int64_t> symbols() const { return symbols_; }

  void* at(ValueId value) {
    if (const auto found = memory_.find(value.value); found != memory_.end()) return found->second;
    return memory_[value.value] = tensors_.emplace(value.value, made(value)).first->second.data();
  }

  ops::HostTensor take(ValueId value) { return std::move(tensors_.at(value.value)); }

 private:
  ops::HostTensor made(ValueId value) const {
    if (value.value >= graph_.value_capacity()) {
      const codegen::Temporary& temporary = temporaries_[value.value - graph_.value_capacity()];
      return ops::HostTensor(temporary.dtype, {temporary.elements.evaluate(symbols_)});
    }
    const ir::Type& type = graph_.type(value);
    std::vector<std::int64_t> shape;
    for (const ir::Dim& d : type.shape) shape.push_back(d.evaluate(symbols_));
    return ops::HostTensor(type.dtype, shape);
  }

  const ir::Graph& graph_;
  std::span<const codegen::Temporary> temporaries_;
  std::vector<std::int64_t> symbols_;
  std::map<std::uint32_t, void*> memory_;
  std::map<std::uint32_t, ops::HostTensor> tensors_;
};

llvm_backend::Jit& jit() {
  static auto& made = *new llvm_backend::Jit(llvm_backend::detect_machine());
  return made;
}

}  // namespace

std::vector<ops::HostTensor> run_on_host(const ScheduledGraph& scheduled, std::span<const ops::TensorView> inputs) {
  HostValues values(scheduled, inputs);
  const HostGrid isa(jit().target());
  for (const ScheduledKernel& kernel : scheduled.kernels) {
    const auto object = jit().compile(llvm_backend::Tier::standard, [&](llvm::Module& module) {
      cuda::emit_kernel(module, kernel.step.kernel, kernel.schedule, isa, "kernel");
    });
    const auto code = llvm_backend::link(object, {"kernel"});
    std::vector<std::int64_t> symbols;
    for (SymbolId s : kernel.schedule.symbols) symbols.push_back(values.symbols()[s.value]);
    std::vector<std::vector<ValueId>> runs = kernel.step.others;
    runs.insert(runs.begin(), kernel.step.buffers);
    const std::size_t at_once = kernel.schedule.runs;
    for (std::size_t first = 0; first < runs.size(); first += at_once) {
      const std::size_t count = std::min(at_once, runs.size() - first);
      std::vector<void*> buffers;
      for (std::size_t run = first; run < first + count; ++run)
        for (std::size_t i = 0; i < cuda::memory_buffers(kernel.step.kernel); ++i) {
          const auto width = static_cast<std::int64_t>(size_of(kernel.step.kernel.buffers[i].dtype));
          buffers.push_back(static_cast<char*>(values.at(runs[run][i])) + (kernel.step.starts.empty() ? 0 : kernel.step.starts[run * runs[run].size() + i] * width));
        }
      const std::int64_t blocks = kernel.schedule.blocks().evaluate(values.symbols()) * static_cast<std::int64_t>(count);
      for (std::int64_t n = 0; n < blocks; ++n)
        run_block(reinterpret_cast<HostKernel>(code.functions[0]), buffers.data(), symbols.data(), static_cast<std::uint32_t>(n), kernel.schedule.team > 1);
    }
  }
  std::vector<ops::HostTensor> outputs;
  for (const ir::Output& output : scheduled.graph.outputs()) outputs.push_back(values.take(output.value));
  return outputs;
}

std::string fault_on_host(const ScheduledGraph& scheduled, const ir::Graph& graph, std::span<const ops::TensorView> inputs, double tolerance) {
  const auto got = run_on_host(scheduled, inputs);
  const auto want = ops::evaluate(graph, inputs, ops::Precision::judge);
  for (std::size_t i = 0; i < got.size(); ++i)
    if (auto d = ops::first_difference(got[i].view(), want[i].view(), tolerance)) return *d;
  return {};
}

}  // namespace tenon::ptx_test
