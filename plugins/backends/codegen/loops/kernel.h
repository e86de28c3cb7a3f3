// A fused loop nest: what one generated function computes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ops/loop_body.h"
#include "loops/index_algebra.h"
#include "loops/schedule.h"

namespace tenon::codegen {

/// Refers to an operation of a kernel.
using OpId = std::uint32_t;
inline constexpr OpId kNoOp = 0xffffffffu;

enum class OperationKind : std::uint8_t {
  primitive,  // a scalar primitive of `args`
  constant,   // `payload` holds the bits
  index,      // the i64 value of `offset`
  load,       // buffer `payload` at element `offset`; masked: args[0] is the mask, args[1] the value where it is false
  checked,    // args[0] if it is in [0, offset), else fails the call and gives 0; payload: dimension; masked: args[1] is the mask
  reduced,    // result `payload & 0xffff` of reduction `payload >> 16`, at the current point of the outer loops
  product,    // the element of the matrix product that the kernel follows, while it is planned
  old_value,  // scatter: the element at the target, before
};

/// One operation on scalars; in straight-line order, like the instructions of a ScalarProgram. dtypes f16 and bf16 are the storage forms.
struct Operation {
  OperationKind kind = OperationKind::primitive;
  ops::Primitive primitive = ops::Primitive::constant;
  DType dtype = DType::f32;
  bool masked = false;
  std::uint64_t payload = 0;
  OpId args[3] = {kNoOp, kNoOp, kNoOp};
  Dim offset = Dim();
};

/// The value of a constant; NaN for other operations.
double number_of(const Operation& op);
/// Whether the operation is that number, as a constant of a floating dtype.
bool is_number(const Operation& op, double number);

struct Loop {
  SymbolId variable;
  Dim extent;  // of inner loops it may depend on outer loop variables
};

/// Memory that a kernel reads or writes; numbered by first use.
struct Buffer {
  DType dtype = DType::f32;
  Dim bytes;             // of all of it
  bool written = false;
  bool row = false;      // what a stage leaves to later ones, for one point of the outer loops: no memory that others see

  /// True when 32 bits hold the place of any element.
  bool is_narrow() const { return bytes.is_constant() && bytes.constant() < (std::int64_t{1} << 31) && size_of(dtype) <= 4; }
};

struct Store {
  std::uint32_t buffer = 0;
  Dim offset;
  OpId value = kNoOp;
};

/// A reduction over the inner loops: `elements` (one an accumulator) at every point, combined by `reducer`.
struct Reduction {
  ops::Reducer reducer;
  std::vector<OpId> elements;
};

enum class StageKind : std::uint8_t {
  row,     // stores once a point of the outer loops
  reduce,  // runs reductions over the inner loops
  map,     // stores at every point of the inner loops, or of the first of them: those that the stores tell apart
};

struct Stage {
  StageKind kind = StageKind::row;
  std::vector<std::uint32_t> reductions;
  std::vector<Store> stores;  // of `reduce`: to rows that later stages read, at every point of the inner loops
};

/// For every point of `outer` runs the stages one after the other.
struct Kernel {
  std::vector<Loop> outer;
  std::vector<Loop> inner;
  std::vector<Operation> operations;
  std::vector<Reduction> reductions;
  std::vector<Stage> stages;
  std::vector<Buffer> buffers;
  bool scatter = false;  // points run in order, one after the other; stores go to their computed targets
  std::vector<SymbolId> apart;  // of a scatter: loops of which no two iterations write to one element, so that they may run in any order
  std::shared_ptr<const Schedule> schedule;  // null until a machine has made one; copies of the kernel share it
};

/// The number of inner loops, from the first on, that tell apart where a store goes.
std::size_t inner_loops_of(const std::vector<Loop>& inner, const Store& store);

/// What an operation needs: its arguments, and the values in its index.
std::vector<OpId> needs_of(const Operation& operation);
/// What some operations need, at any depth, they among it; each once.
std::vector<OpId> all_needs_of(std::span<const Operation> operations, std::vector<OpId> some);
/// Which operations the stages need.
std::vector<bool> needed_by(const Kernel& kernel, std::span<const Stage> stages);

/// Which operations of a kernel need one that `begins` holds of.
std::vector<bool> dependents(const std::vector<Operation>& operations, const std::function<bool(const Operation&)>& begins);
/// Which need the result of one of its reductions.
std::vector<bool> reduction_dependents(const std::vector<Operation>& operations);

/// Bytes that the kernel stores, as far as they are constant, without rows.
double written_bytes(const Kernel& kernel);

/// Takes the constant part out of the places that loads and stores of a buffer have in common, so that kernels are equal that differ in
/// where they start alone. Gives it in elements, by buffer. Places stay at or behind the start.
std::vector<std::int64_t> take_out_starts(Kernel& kernel);

/// The canonical text of a kernel, with all that its code depends on: equal kernels (up to the numbering of loop variables) give equal texts. It is the key of compiled code and
/// what TENON_LOGS=kernel_code prints above the code.
std::string to_text(const Kernel& kernel);

/// How many points loops have together, as far as their sizes are known.
double estimated_points(const IndexAlgebra& algebra, std::span<const Loop> loops);

/// A rough count of scalar work at one point of the innermost loops, with an expensive function counted as eight operations.
double work_per_point(const Kernel& kernel);
/// The same at all points, as far as the loops' sizes do not depend on other loops.
double estimated_work(const IndexAlgebra& algebra, const Kernel& kernel);
/// The same for one operation, without what it needs.
double work_of(const Operation& op);
/// The same for one primitive.
double cost_of(ops::Primitive primitive, DType dtype);

}  // namespace tenon::codegen
