#include "matrix/amx_kernel.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <array>
#include <cstddef>

#include "matrix/tile_emitter.h"

namespace tenon::llvm_backend {

namespace {

using llvm::Value;

constexpr int kSide = 16, kRowBytes = 64;  // of a register
constexpr int kSquares = 2;                // of C side by side, and below each other: the first four registers
constexpr int kRegisters = 8, kFirstA = 4, kFirstB = 6;

/// What ldtilecfg reads: palette 1, and of each register its bytes a row and its rows.
std::array<std::uint8_t, 64> whole_registers() {
  constexpr std::size_t kBytesOfRows = 16, kRows = 48;
  std::array<std::uint8_t, 64> configuration{};
  configuration[0] = 1;
  for (std::size_t i = 0; i < kRegisters; ++i) configuration[kBytesOfRows + 2 * i] = kRowBytes, configuration[kRows + i] = kSide;
  return configuration;
}

/// Rows in memory as a register reads them: so many bytes apart.
struct Rows {
  Value *first, *apart;
};

class AmxEmitter : public TileEmitter {
 public:
  AmxEmitter(llvm::Module& module, const Target& target) : TileEmitter(module, target, DType::bf16, kAmxTile) {}

  llvm::Function* emit(const std::string& name) {
    declare_microkernel(name);
    copied_a_ = memory(kAmxTile.rows * kSide), copied_b_ = memory(kSide * kAmxTile.columns);
    Value* copied_c = memory(kAmxTile.rows * kAmxTile.columns);
    Value* rows = argument(7);
    Value* whole_rows = ir_.CreateICmpEQ(ir_.CreateAnd(rows, number(kSide - 1)), number(0));
    Value* whole = ir_.CreateAnd(whole_rows, ir_.CreateICmpEQ(argument(8), number(kAmxTile.columns)));
    const Rows c{ir_.CreateSelect(whole, argument(3), copied_c), ir_.CreateSelect(whole, ir_.CreateMul(argument(4), number(bytes_)), number(kAmxTile.columns * bytes_))};
    Value *part = ir_.CreateNot(whole), *starts = ir_.CreateNot(is(Before::left_out));
    masks_ = column_masks();
    when(ir_.CreateAnd(part, starts), [&] { copy_c(argument(3), argument(4), copied_c, number(kAmxTile.columns)); });
    either(ir_.CreateICmpSGT(rows, number(kSide)), [&](bool both) { sum(both ? kSquares : 1, c, starts); });
    when(part, [&] { copy_c(copied_c, number(kAmxTile.columns), argument(3), argument(4)); });
    ir_.CreateRetVoid();
    return function_;
  }

 private:
  llvm::ConstantInt* number(std::int64_t n) { return ir_.getInt64(static_cast<std::uint64_t>(n)); }
  llvm::ConstantInt* name_of(int tile_register) { return ir_.getInt8(static_cast<std::uint8_t>(tile_register)); }
  Value* beyond(Value* address, Value* elements) { return ir_.CreateGEP(element_, address, elements); }

  void instruction(llvm::Intrinsic::ID id, llvm::ArrayRef<Value*> arguments) { ir_.CreateIntrinsic(id, {}, arguments); }

  Value* memory(int elements) {
    auto* made = ir_.CreateAlloca(llvm::ArrayType::get(element_, static_cast<std::uint64_t>(elements)));
    made->setAlignment(llvm::Align(kRowBytes));
    return made;
  }

  template <class Body>
  void either(Value* condition, Body body) {
    auto *yes = block("yes"), *no = block("no"), *after = block("after");
    ir_.CreateCondBr(condition, yes, no);
    for (const bool holds : {true, false}) {
      ir_.SetInsertPoint(holds ? yes : no);
      body(holds);
      ir_.CreateBr(after);
    }
    ir_.SetInsertPoint(after);
  }

  template <class Body>
  void when(Value* condition, Body body) {
    either(condition, [&](bool holds) {
      if (holds) body();
    });
  }

  template <class Body>
  void each(Value* low, Value* high, std::int64_t step, Body body) {
    loop(low, high, number(step), {}, [&](Value* i, std::vector<Value*>&) { body(i); });
  }

  // ---- operands

  Value* row_of_a(Value* row) {
    Value* entry = ir_.CreateGEP(ir_.getPtrTy(), argument(0), ir_.CreateAdd(row, number(1)));
    return ir_.CreateAlignedLoad(ir_.getPtrTy(), entry, llvm::Align(8));
  }

  /// A group of rows of a where they lie.
  Rows lying_a(int group) {
    Value *first = row_of_a(number(group * kSide)), *second = row_of_a(number(group * kSide + 1));
    return {first, ir_.CreatePtrDiff(ir_.getInt8Ty(), second, first)};
  }

  Rows lying_b() {
    Value* first = ir_.CreateAlignedLoad(ir_.getPtrTy(), argument(0), llvm::Align(8));
    return {first, ir_.CreateMul(argument(2), number(bytes_))};
  }

  Rows copied_a(int group) { return {ir_.CreateConstGEP1_64(element_, copied_a_, static_cast<std::uint64_t>(group * kSide * kSide)), number(kRowBytes)}; }
  Rows copied_b() { return {copied_b_, number(kAmxTile.columns * bytes_)}; }

  void copy(Value* from, Value* to, Value* mask) {
    const llvm::Align align(static_cast<std::uint64_t>(bytes_));
    ir_.CreateAlignedStore(ir_.CreateMaskedLoad(vector_, from, align, mask, llvm::Constant::getNullValue(vector_)), to, llvm::Align(kRowBytes));
  }

  Value* first_lanes(Value* count) {
    llvm::SmallVector<llvm::Constant*, 16> numbers;
    for (int l = 0; l < lanes_; ++l) numbers.push_back(number(l));
    return ir_.CreateICmpSLT(llvm::ConstantVector::get(numbers), ir_.CreateVectorSplat(static_cast<unsigned>(lanes_), count));
  }

  /// Copies `count` pairs from k on of groups of rows of a, with zeros behind them.
  void copy_a(int groups, Value* k, Value* count) {
    Value* mask = first_lanes(count);
    each(number(0), number(groups * kSide), 1, [&](Value* row) { copy(beyond(row_of_a(row), k), beyond(copied_a_, ir_.CreateMul(row, number(kSide))), mask); });
  }

  /// Copies `count` rows of b from k on, with rows of zeros behind them.
  void copy_b(const Rows& b, Value* k, Value* count) {
    each(number(0), number(kAmxPairs), 1, [&](Value* row) {
      Value* mask = ir_.CreateVectorSplat(static_cast<unsigned>(lanes_), ir_.CreateICmpSLT(row, count));
      Value* from = row_of(b, ir_.CreateAdd(k, row));
      Value* to = beyond(copied_b_, ir_.CreateMul(row, number(kAmxTile.columns)));
      for (int j = 0; j < kSquares; ++j) copy(beyond(from, number(j * kSide)), beyond(to, number(j * kSide)), mask);
    });
  }

  /// Copies the rows and columns that there are of C, or of a copy of it.
  void copy_c(Value* from, Value* from_apart, Value* to, Value* to_apart) {
    const llvm::Align align(static_cast<std::uint64_t>(bytes_));
    each(number(0), argument(7), 1, [&](Value* row) {
      for (int j = 0; j < vectors_; ++j) {
        const auto at = [&](Value* first, Value* apart) { return beyond(first, ir_.CreateAdd(ir_.CreateMul(row, apart), number(j * lanes_))); };
        Value* mask = masks_[static_cast<std::size_t>(j)];
        ir_.CreateMaskedStore(ir_.CreateMaskedLoad(vector_, at(from, from_apart), align, mask, llvm::Constant::getNullValue(vector_)), at(to, to_apart), align, mask);
      }
    });
  }

  // ---- sums

  /// Sums the tile's columns of so many groups of rows, from what `c` holds if `starts`: whole blocks of pairs, then those that are left.
  void sum(int groups, const Rows& c, Value* starts) {
    const auto squares = [&](auto body) {
      for (int g = 0; g < groups; ++g)
        for (int j = 0; j < kSquares; ++j) body(name_of(g * kSquares + j), beyond(row_of(c, number(g * kSide)), number(j * kSide)));
    };
    either(starts, [&](bool reads) {
      squares([&](Value* square, Value* place) {
        if (reads) instruction(llvm::Intrinsic::x86_tileloadd64, {square, place, c.apart});
        else instruction(llvm::Intrinsic::x86_tilezero, {square});
      });
    });
    const Rows b = lying_b();
    Value *first = argument(5), *end = argument(6);
    Value* whole = ir_.CreateAdd(first, ir_.CreateAnd(ir_.CreateSub(end, first), number(-kAmxPairs)));
    either(ir_.CreateICmpEQ(argument(7), number(groups * kSide)), [&](bool all_rows) {
      std::vector<Rows> a;
      for (int g = 0; g < groups; ++g) a.push_back(all_rows ? lying_a(g) : copied_a(g));
      each(first, whole, kAmxPairs, [&](Value* k) {
        if (!all_rows) copy_a(groups, k, number(kAmxPairs));
        multiply(a, all_rows ? k : number(0), row_of(b, k), b.apart);
      });
    });
    each(whole, end, kAmxPairs, [&](Value* k) {
      Value* count = ir_.CreateSub(end, k);
      copy_a(groups, k, count), copy_b(b, k, count);
      std::vector<Rows> a;
      for (int g = 0; g < groups; ++g) a.push_back(copied_a(g));
      multiply(a, number(0), copied_b().first, copied_b().apart);
    });
    squares([&](Value* square, Value* place) { instruction(llvm::Intrinsic::x86_tilestored64, {square, place, c.apart}); });
  }

  Value* row_of(const Rows& rows, Value* k) { return ir_.CreateGEP(ir_.getInt8Ty(), rows.first, ir_.CreateMul(k, rows.apart)); }
  void read(int tile_register, Value* address, Value* apart) { instruction(llvm::Intrinsic::x86_tileloadd64, {name_of(tile_register), address, apart}); }

  /// Adds the products of a block of pairs, those from pair k on of a's rows, with rows of b.
  void multiply(const std::vector<Rows>& a, Value* k, Value* b, Value* b_apart) {
    for (int j = 0; j < kSquares; ++j) read(kFirstB + j, beyond(b, number(j * kSide)), b_apart);
    for (int g = 0; g < static_cast<int>(a.size()); ++g) {
      const Rows& rows = a[static_cast<std::size_t>(g)];
      read(kFirstA + g, beyond(rows.first, k), rows.apart);
      for (int j = 0; j < kSquares; ++j) instruction(llvm::Intrinsic::x86_tdpbf16ps, {name_of(g * kSquares + j), name_of(kFirstA + g), name_of(kFirstB + j)});
    }
  }

  Value *copied_a_ = nullptr, *copied_b_ = nullptr;
};

}  // namespace

void emit_amx_use(llvm::Module& module, const Target& target, const std::string& enter, const std::string& leave) {
  llvm::IRBuilder<> ir(module.getContext());
  const auto function = [&](const std::string& name, auto body) {
    auto* made = llvm::Function::Create(llvm::FunctionType::get(ir.getVoidTy(), {}, false), llvm::Function::ExternalLinkage, name, module);
    declare_for_machine(*made, target);
    ir.SetInsertPoint(llvm::BasicBlock::Create(ir.getContext(), "entry", made));
    body();
    ir.CreateRetVoid();
  };
  function(enter, [&] {
    const auto configuration = whole_registers();
    auto* bytes = llvm::ConstantDataArray::get(ir.getContext(), llvm::ArrayRef(configuration));
    auto* global = new llvm::GlobalVariable(module, bytes->getType(), true, llvm::GlobalValue::PrivateLinkage, bytes);
    global->setAlignment(llvm::Align(kRowBytes));
    ir.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {global});
  });
  function(leave, [&] { ir.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {}); });
}

llvm::Function* emit_amx_kernel(llvm::Module& module, const Target& target, const std::string& name) { return AmxEmitter(module, target).emit(name); }

}  // namespace tenon::llvm_backend
