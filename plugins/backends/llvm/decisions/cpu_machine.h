// A CPU as planning knows it: vector registers, caches, threads.
#pragma once

#include "isa/target.h"
#include "machine/machine.h"

namespace tenon::llvm_backend {

class CpuMachine : public codegen::Machine {
 public:
  explicit CpuMachine(const Target& target);
  /// With so many lanes of float32 in a vector register, and no instructions for half precision.
  explicit CpuMachine(unsigned lanes) : CpuMachine(Target{.cpu = {}, .features = {}, .vector_bytes = 4 * lanes}) {}

  bool worth_storing(double cost, std::size_t paths) const override;
  double cost_of_load(double elements, double points, bool passing) const override;
  bool worth_storing_early(double bytes, double kept) const override;
  double worth_keeping_alive(double bytes) const override;
  bool worth_storing_repeated(double cost, double repeats) const override;
  bool worth_storing_scattered(double cost) const override;
  bool worth_writing_part(double whole_elements, double part_elements) const override;
  bool worth_sweeping(std::size_t reductions) const override;
  bool row_stays_near(double rows, double elements) const override;
  bool worth_keeping_row(double operations, double bytes, double kept) const override;
  bool is_large_product(double multiplications, bool over_windows, double columns) const override;
  bool worth_matrix_kernel(const codegen::ProductSize& product) const override;
  bool worth_following(const codegen::ProductSize& product, std::size_t read) const override;
  bool follows_in_any_order() const override { return false; }
  bool worth_chaining(const codegen::ChainSize& chain) const override;
  bool worth_pooling(double elements, std::int64_t row_elements, std::int64_t window) const override;
  bool worth_transforming(DType dtype, double rows, double columns, double run) const override;
  bool fills_matrix_kernel(double columns, DType dtype) const override;
  bool multiplies(DType dtype) const override { return !is_reduced_float(dtype) || multiplies_pairs(dtype); }
  bool reads_runs_of(DType dtype, const codegen::Dim& length) const override;
  bool reads_runs_of_columns(DType dtype) const override { return !is_reduced_float(dtype); }
  bool worth_leaving_unpacked(const codegen::ProductSize& product) const override;
  std::int64_t parts(const codegen::Kernel& kernel, const codegen::IndexAlgebra& algebra) const override;
  void shape(codegen::Kernel& kernel, codegen::IndexAlgebra& algebra, const codegen::KeepRow& worth) const override;
  bool worth_joint_launch(double operations) const override;
  std::int64_t parts_of_rows(const codegen::ResultRows& rows) const override;

  // ---- matrix products as tiles
  /// Lanes of float32 in a vector register.
  unsigned lanes() const { return lanes_; }
  /// Columns of a product that are computed together, as packed.
  std::int64_t panel_columns(DType dtype) const;
  /// Whether products of the dtype multiply elements of it, two of the sum at a time, and not as they are converted for it.
  bool multiplies_pairs(DType dtype) const { return has_bf16_pairs_ && dtype == DType::bf16; }
  /// Whether dot products read elements of the dtype, of half precision, and convert them in registers.
  bool widens(DType dtype) const { return dtype == DType::bf16 || (has_half_ && dtype == DType::f16); }
  /// Rows of results of a pooling that are computed together, each from `window` rows of a product, `step` further than the last.
  std::int64_t pooled_rows(std::int64_t row_elements, std::int64_t step, std::int64_t window) const;
  /// The side of the squares by which a convolution is transformed, where a larger error is allowed; of pictures of so many places a side.
  std::int64_t side_of_squares(double weights, double height, double width) const;

 private:
  unsigned lanes_;
  bool has_half_, has_bf16_pairs_, has_bf16_tiles_;
};

}  // namespace tenon::llvm_backend
