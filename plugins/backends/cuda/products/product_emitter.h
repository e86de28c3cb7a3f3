// A kernel that multiplies blocks of matrices on tensor cores, as the function that each thread of a grid runs.
#pragma once

#include <string>
#include <vector>

#include "lower/block_emitter.h"
#include "schedule/product_tile.h"

namespace tenon::cuda {

/// Adds the kernel `name`, a product or not, to the module.
void emit_kernel(llvm::Module& module, const codegen::Kernel& kernel, const Schedule& schedule, const PtxIsa& isa, const std::string& name);

class ProductEmitter : protected BlockEmitter {
 public:
  ProductEmitter(llvm::Module& module, const codegen::Kernel& kernel, const Schedule& schedule, const PtxIsa& isa)
      : BlockEmitter(module, kernel, schedule, isa), product_(*schedule.product) {
    if (has_short_indices(kernel)) index_type_ = ir_.getInt32Ty();
  }

  void emit(const std::string& name);

 protected:
  /// Whether 32 bits hold every index.
  static bool has_short_indices(const codegen::Kernel& kernel);

  using Registers = std::vector<llvm::Value*>;
  static constexpr std::size_t kBatchDepth = 1;

  /// An operand's part in a block.
  struct Side {
    const ProductTile& product;
    const TileOperand& operand;
    std::span<const codegen::Loop> summed;
    unsigned extent;      // of the block
    std::int64_t size;    // of the product
    unsigned start;       // in a stage, in bytes
    llvm::Value* first = nullptr;  // of the block, along the side; i32

    bool is_left() const { return &operand == &product.a; }
    unsigned row_bytes() const { return product.row_bytes(operand, extent); }
  };
  /// Fragments of one operand for a step of 32 bytes of the sum: of each tile the registers that tensor cores take.
  struct Fragments {
    std::vector<Registers> large, small;  // `small`: what rounding left of float32, where that counts
  };

  // ---- the whole (product_emitter.cpp)
  void begin(const std::string& name, unsigned shared_bytes);
  void find_block(llvm::Value* block);
  Carried sums();
  void put_sums(const Carried& sums);
  void finish_sums();
  void finish_vector(llvm::Value* row, llvm::Value* column);
  llvm::Value* tile_of_sums(llvm::Value* row, llvm::Value* column, llvm::Value* group);
  llvm::Value* all_sums(llvm::Value* row, llvm::Value* column);
  llvm::Value* sums_of(unsigned block, llvm::Value* place);
  bool sums_groups_first() const { return product_.cluster > 1 && product_.groups > 1; }
  void add_groups();
  void meet_all();
  llvm::Value* shared(llvm::Value* bytes);
  llvm::Value* number(unsigned n) { return ir_.getInt32(n); }
  /// Gives the loops' variables their values at place `flat` of all of them; an i32.
  void decode(llvm::Value* flat, std::span<const codegen::Loop> loops);
  unsigned warps_across() const { return kBlock / kWarp / product_.warps_down / product_.groups; }
  unsigned tiles_down() const { return product_.block_rows / product_.warps_down / 16; }
  unsigned tiles_across() const { return product_.block_columns / warps_across() / 8; }

  // ---- operands to shared memory (operand_loading.cpp)
  void load_step(llvm::Value* stage, llvm::Value* step);
  void load_operand(const Side& side, llvm::Value* stage, llvm::Value* step);
  void on_operand(const Side& side);
  void load_vector(const Side& side, llvm::Value* to, llvm::Value* inside);
  llvm::Value* clamped(llvm::Value* place, std::int64_t size, unsigned lanes);

  // ---- tensor cores (tensor_cores.cpp)
  Carried multiplied(llvm::Value* stage, Carried sums);
  Carried multiplied_by_warpgroup(llvm::Value* stage, const Carried& sums);
  void lay_out_right(llvm::Value* stage);
  void multiply(const Fragments& a, const Fragments& b, Carried& sums);
  void multiply_tiles(const std::vector<Registers>& a, const std::vector<Registers>& b, Carried& sums);
  Fragments fragments(const Side& side, llvm::Value* stage, unsigned part, unsigned tiles, llvm::Value* first);
  Registers words_of(const Side& side, llvm::Value* stage, unsigned part, llvm::Value* first, bool is_left);
  Registers matrices_of(const Side& side, llvm::Value* stage, unsigned part, llvm::Value* first, bool is_left);
  void split(const Registers& words, Registers& large, Registers& small);
  Registers rounded(const Registers& words);
  llvm::Value* of_group(const Side& side, llvm::Value* stage);
  Carried exact_where_odd(Carried sums);
  Carried plain_sums(llvm::Value* stage, Carried before);
  llvm::Value* place_of_element(const Side& side, llvm::Value* stage, llvm::Value* place, llvm::Value* depth);
  llvm::Value* element_at(const Side& side, llvm::Value* stage, llvm::Value* place, llvm::Value* depth);
  llvm::Value* at_bytes(llvm::Value* stage, llvm::Value* bytes) { return ir_.CreateGEP(ir_.getInt8Ty(), stage, bytes); }

  const ProductTile& product_;
  llvm::Value *thread32_ = nullptr, *lane_number_ = nullptr;  // of the block; of the warp
  llvm::Value *part_ = nullptr, *first_step_ = nullptr, *end_step_ = nullptr;  // of the sum, that the block has: its number, and from where to where, i64
  llvm::Value *group_ = nullptr, *warp_row_ = nullptr, *warp_column_ = nullptr;  // of the warp: its group, and where its rectangle starts
  llvm::Value* memory_ = nullptr;  // that the block shares
  std::vector<Side> sides_;
};

}  // namespace tenon::cuda
