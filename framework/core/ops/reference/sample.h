// Conformance cases: operands and attributes for one node of an op, made from a seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/reference/reference.h"

namespace tenon::ops {

/// How the elements of a sample operand are chosen.
enum class Fill : std::uint8_t {
  normal,     // floats around 0, standard deviation 2; integers in [-9, 9] (unsigned: [0, 9]); bools at random
  positive,   // floats in [0.1, 4); integers in [1, 9]; bools true
  unit,       // floats in (-1, 1); integers in {-1, 0, 1}
  probability,  // floats in (0, 1)
  special,    // normal, mixed with nan, infinities, signed zeros, and the extremes of integers
  nonzero,    // normal, without values near 0
  index,      // integers in [0, bound)
  signed_index,  // integers in [-bound, bound)
  distinct,   // all elements different, in random order (so that the place of an extreme is well defined)
};

/// The float types, for samples of ops that take floats only.
inline const std::vector<DType> kFloats{DType::f32, DType::f64, DType::f16, DType::bf16};

/// One operand: a literal, or a tensor whose memory may be strided.
struct SampleOperand {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape = {};
  Fill fill = Fill::normal;
  std::int64_t bound = 0;                            // for the index fills
  std::optional<std::vector<std::int64_t>> strides = {};  // in elements; negative and zero are legal
  std::optional<ir::Literal> literal = {};
};

/// One case of one op. The op's name is not in it: the catalogue entry that made it knows.
struct Sample {
  std::string name;  // what is special about it: "broadcast", "zero_size"
  std::vector<SampleOperand> operands = {};
  ir::Attributes attributes = {};
  double tolerance = 1;  // factor on the tolerance of the dtype, for ops that are ill conditioned
};

/// The cases of an op, with names made unique.
std::vector<Sample> samples_of(const Op& op);

/// A graph of one node: inputs for the tensor operands in order, all results are outputs.
ir::Graph sample_graph(const Op& op, const Sample& sample);

/// The memory of an input: the allocation, and the (maybe strided) view of it that is the operand.
struct SampleInput {
  HostTensor storage;
  TensorView view;
};

/// Inputs for the graph of a sample; equal seeds give equal bytes on every machine.
std::vector<SampleInput> sample_inputs(const Sample& sample, std::uint64_t seed);

/// The largest violation of the tolerance of two tensors of one shape; nothing when they agree. `want` may be wider than `got`
/// (a judge's float64). Floats agree when |got - want| <= atol + rtol * |want| with the tolerances of `got`'s dtype times
/// `tolerance`; nan agrees with nan, infinities with equal infinities; all else must be equal.
std::optional<std::string> first_difference(const TensorView& got, const TensorView& want, double tolerance = 1);

}  // namespace tenon::ops
