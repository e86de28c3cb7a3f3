// A scalar program made ready to run over lanes: registers allocated, constants filled in, operands attached.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/ops/op.h"

namespace tenon::ops::reference {

/// The same program with every float computed in float64. Loads and parameters of float32 become float64.
ScalarProgram widened(const ScalarProgram& program);

class Program {
 public:
  /// `operands` must outlive the program; they are what loads read.
  Program(ScalarProgram program, std::span<const TensorView> operands, std::span<const std::int64_t> symbols, std::size_t lanes);

  std::size_t lanes() const { return lanes_; }
  /// The lanes of a loop's index, or null when the program does not use it. The caller fills them before `run`.
  std::int64_t* loop_index(std::size_t loop) const { return loop < loops_.size() ? static_cast<std::int64_t*>(loops_[loop]) : nullptr; }
  /// The register of a parameter, or null when the program does not use it.
  void* parameter(std::size_t index) const { return index < parameters_.size() ? parameters_[index] : nullptr; }
  /// Runs the first `n` lanes. Throws (invalid_argument) when a load's index is out of bounds.
  void run(std::size_t n);

  std::size_t result_count() const { return program_.results.size(); }
  const void* result(std::size_t index) const { return registers_[program_.results[index]]; }
  DType result_dtype(std::size_t index) const { return program_.instructions[program_.results[index]].dtype; }
  /// The parameter whose value result `index` is, unchanged; or -1.
  int result_is_parameter(std::size_t index) const;

 private:
  void place_leaves(std::span<const std::int64_t> symbols);
  void load(const Instruction& i, void* result, std::size_t n);
  void masked_load(const Instruction& i, void* result, std::size_t n);
  void offset_lanes(const Instruction& i, const TensorView& view, const std::uint8_t* mask, std::size_t n);

  ScalarProgram program_;
  std::span<const TensorView> operands_;
  std::size_t lanes_;
  std::unique_ptr<std::byte[]> memory_;
  std::vector<void*> registers_;
  std::vector<void*> loops_, parameters_;
  std::vector<std::int64_t> offsets_;
};

}  // namespace tenon::ops::reference
