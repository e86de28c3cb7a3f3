// A GPU as planning knows it: recomputing is cheap, memory is dear, rows stay in the registers of a team.
#pragma once

#include "machine/machine.h"
#include "schedule/product_tile.h"

namespace tenon::cuda {

class GpuMachine final : public codegen::Machine {
 public:
  /// With `has_tensor_cores` products of a real size are kernels of their own.
  explicit GpuMachine(bool has_tensor_cores);

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
  bool follows_in_any_order() const override { return true; }
  bool worth_chaining(const codegen::ChainSize& chain) const override;
  bool worth_pooling(double elements, std::int64_t row_elements, std::int64_t window) const override;
  bool worth_transforming(DType dtype, double rows, double columns, double run) const override;
  bool fills_matrix_kernel(double columns, DType dtype) const override;
  bool multiplies(DType dtype) const override { return has_tensor_cores_ && is_multiplied(dtype); }
  bool reads_runs_of(DType dtype, const codegen::Dim&) const override { return multiplies(dtype); }
  bool reads_runs_of_columns(DType dtype) const override { return multiplies(dtype); }
  bool worth_leaving_unpacked(const codegen::ProductSize&) const override { return false; }
  std::int64_t parts(const codegen::Kernel& kernel, const codegen::IndexAlgebra& algebra) const override;
  void shape(codegen::Kernel& kernel, codegen::IndexAlgebra& algebra, const codegen::KeepRow& worth) const override;
  bool worth_joint_launch(double operations) const override;
  std::int64_t parts_of_rows(const codegen::ResultRows&) const override { return 0; }

 private:
  bool has_tensor_cores_;
};

}  // namespace tenon::cuda
