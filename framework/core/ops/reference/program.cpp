#include "core/ops/reference/program.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/ops/reference/element.h"
#include "core/ops/reference/scalar_kernels.h"

namespace tenon::ops::reference {
namespace {

bool is_leaf(Primitive p) {
  return p == Primitive::constant || p == Primitive::extent || p == Primitive::loop_index || p == Primitive::parameter;
}

DType widened(DType t) { return t == DType::f32 ? DType::f64 : t == DType::c64 ? DType::c128 : t; }

/// Appends a conversion of register `source`, and gives its register.
std::uint32_t append_conversion(ScalarProgram& program, std::uint32_t source, DType to) {
  program.instructions.push_back({.op = Primitive::convert, .dtype = to, .args = {source}});
  return static_cast<std::uint32_t>(program.instructions.size() - 1);
}

}  // namespace

ScalarProgram widened(const ScalarProgram& program) {
  ScalarProgram wide{.dims = program.dims};
  std::vector<std::uint32_t> place;
  for (Instruction i : program.instructions) {
    for (std::uint32_t& argument : i.args)
      if (argument < place.size()) argument = place[argument];
    if (i.op == Primitive::load) {
      const auto first = static_cast<std::uint32_t>(wide.indices.size());
      for (std::uint32_t k = 0; k < i.index_count; ++k) wide.indices.push_back(place[program.indices[i.first_index + k]]);
      i.first_index = first;
    }
    // The bits of a float32 are asked for: round to it first, and widen afterwards.
    if (i.op == Primitive::bit_cast && i.dtype == DType::i32 && wide.instructions[i.args[0]].dtype == DType::f64)
      i.args[0] = append_conversion(wide, i.args[0], DType::f32);
    if (i.op == Primitive::constant && real_type(i.dtype) == DType::f32)
      i.payload = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(i.payload))));
    const bool bits_of_float32 = i.op == Primitive::bit_cast && i.dtype == DType::f32;
    if (!bits_of_float32) i.dtype = widened(i.dtype);
    wide.instructions.push_back(i);
    auto at = static_cast<std::uint32_t>(wide.instructions.size() - 1);
    if (bits_of_float32) at = append_conversion(wide, at, DType::f64);
    place.push_back(at);
  }
  for (std::uint32_t r : program.results) wide.results.push_back(place[r]);
  return wide;
}

Program::Program(ScalarProgram program, std::span<const TensorView> operands, std::span<const std::int64_t> symbols, std::size_t lanes)
    : program_(std::move(program)), operands_(operands), lanes_(lanes), offsets_(lanes) {
  const std::size_t stride = lanes * kLaneBytes;
  memory_ = std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(1, program_.instructions.size() * stride));
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) registers_.push_back(memory_.get() + i * stride);
  place_leaves(symbols);
}

void Program::place_leaves(std::span<const std::int64_t> symbols) {
  const auto remember = [](std::vector<void*>& table, std::size_t index, void* reg) {
    if (index >= table.size()) table.resize(index + 1, nullptr);
    table[index] = reg;
  };
  for (std::size_t r = 0; r < program_.instructions.size(); ++r) {
    const Instruction& i = program_.instructions[r];
    if (i.op == Primitive::constant) fill_constant(i.dtype, i.payload, registers_[r], lanes_);
    if (i.op == Primitive::extent)
      fill_constant(DType::i64, static_cast<std::uint64_t>(program_.dims[i.payload].evaluate(symbols)), registers_[r], lanes_);
    if (i.op == Primitive::loop_index) remember(loops_, i.payload, registers_[r]);
    if (i.op == Primitive::parameter) remember(parameters_, i.payload, registers_[r]);
  }
}

void Program::run(std::size_t n) {
  for (std::size_t r = 0; r < program_.instructions.size(); ++r) {
    const Instruction& i = program_.instructions[r];
    if (is_leaf(i.op)) continue;
    if (i.op == Primitive::load) {
      i.masked ? masked_load(i, registers_[r], n) : load(i, registers_[r], n);
      continue;
    }
    compute(i, program_.instructions[i.args[0]].dtype, registers_[i.args[0]], registers_[i.args[1]], registers_[i.args[2]],
            registers_[r], n);
  }
}

void Program::offset_lanes(const Instruction& i, const TensorView& view, const std::uint8_t* mask, std::size_t n) {
  TENON_CHECK(i.index_count == view.shape.size(), "a load of operand {} has {} indices; the operand has {} dimensions", i.payload,
              i.index_count, view.shape.size());
  std::fill_n(offsets_.begin(), n, 0);
  for (std::uint32_t d = 0; d < i.index_count; ++d) {
    const auto* index = static_cast<const std::int64_t*>(registers_[program_.indices[i.first_index + d]]);
    for (std::size_t lane = 0; lane < n; ++lane) {
      if (mask && !mask[lane]) continue;
      if (static_cast<std::uint64_t>(index[lane]) >= static_cast<std::uint64_t>(view.shape[d])) [[unlikely]]
        throw Exception(
            error(Code::invalid_argument, "index {} is out of bounds for dimension {} with size {}", index[lane], d, view.shape[d]));
      offsets_[lane] += index[lane] * view.strides[d];
    }
  }
}

void Program::load(const Instruction& i, void* result, std::size_t n) {
  const TensorView& view = operands_[i.payload];
  offset_lanes(i, view, nullptr, n);
  gather(view.dtype, view.data, offsets_.data(), i.dtype, result, n);
}

void Program::masked_load(const Instruction& i, void* result, std::size_t n) {
  const TensorView& view = operands_[i.payload];
  const auto* mask = static_cast<const std::uint8_t*>(registers_[i.args[0]]);
  const auto* otherwise = static_cast<const std::byte*>(registers_[i.args[1]]);
  offset_lanes(i, view, mask, n);
  const std::size_t width = size_of(i.dtype);
  auto* out = static_cast<std::byte*>(result);
  for (std::size_t lane = 0; lane < n; ++lane) {
    if (mask[lane])
      gather(view.dtype, view.data, &offsets_[lane], i.dtype, out + lane * width, 1);
    else
      std::memcpy(out + lane * width, otherwise + lane * width, width);
  }
}

int Program::result_is_parameter(std::size_t index) const {
  const Instruction& i = program_.instructions[program_.results[index]];
  return i.op == Primitive::parameter ? static_cast<int>(i.payload) : -1;
}

}  // namespace tenon::ops::reference
