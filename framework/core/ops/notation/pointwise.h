// Makes the entries of pointwise ops: what they share is inference by broadcasting, and a scalar body.
#pragma once

#include "core/ops/notation/family.h"

namespace tenon::ops {

using Args = std::span<const Scalar>;
using Body = std::function<Scalar(Scalars&, Args, const OpQuery&)>;
/// What each operand is handed, from the operands, the result and its gradient.
using Slope = std::function<std::vector<Scalar>(Scalars&, Args, Scalar result, Scalar gradient, const OpQuery&)>;

/// Which dtypes a pointwise op takes.
enum class Domain : std::uint8_t { any, numbers /* no bool */, floats, integers /* and bool */ };

/// A pointwise op of tensors of one dtype that gives the same dtype.
Op pointwise(std::string name, std::string schema, Domain domain, Promotion promotion, Body body, std::vector<Alias> aliases);

/// "(Tensor self) -> Tensor": of floats (integers are promoted before).
Op unary_float(std::string name, Primitive primitive, std::vector<Alias> aliases, Fill fill = Fill::normal);
Op unary_float(std::string name, Body body, std::vector<Alias> aliases, Fill fill = Fill::normal);
/// "(Tensor self) -> Tensor", dtype kept.
Op unary(std::string name, Domain domain, Body body, std::vector<Alias> aliases);
/// "(Tensor self, Tensor other) -> Tensor" of the common dtype.
Op binary(std::string name, Domain domain, Body body, std::vector<Alias> aliases);
Op binary_float(std::string name, Body body, std::vector<Alias> aliases);
/// Makes an op give bool instead of its operands' dtype.
Op gives_bool(Op op);
Op with_slope(Op op, Slope slope);
/// Gives ops of a family their slopes, by name.
Family with_slopes(Family ops, const std::vector<std::pair<std::string_view, Slope>>& slopes);
Op with_samples(Op op, std::function<std::vector<Sample>()> samples);

/// Inference of pointwise ops whose tensor operands share a dtype.
std::function<Result<infer::Types>(const OpQuery&)> infer_pointwise(Domain domain, std::optional<DType> result = {});

/// Samples of a pointwise op of `operands` tensors over all dtypes of the domain: plain, broadcast, 0-d, zero-size, strided, special
/// values.
std::vector<Sample> pointwise_samples(std::size_t operands, Domain domain, Fill fill = Fill::normal, ir::Attributes attributes = {});

/// The value where the condition holds, else 0.
Scalar value_where(Scalars& s, Scalar condition, Scalar value);
/// 1 / (1 + exp(-x)), whose derivative as a formula does not overflow either.
Scalar logistic(Scalars& s, Scalar x);
/// The sign bit of a float as a bool.
Scalar sign_bit(Scalars& s, Scalar x);
/// |a| with the sign of b.
Scalar copy_sign(Scalars& s, Scalar a, Scalar b);

}  // namespace tenon::ops
