// Building blocks of shape and dtype inference. They throw (invalid_argument, unsupported); the catalogue turns that into Results.
#pragma once

#include "core/ops/op.h"

namespace tenon::ops::infer {

using Types = std::vector<ir::Type>;

/// A dimension, or a shape, with the graph's names for symbols: "s0*2", "[s0, 3]".
std::string text(const ir::Graph& graph, const ir::Dim& dim);
std::string text(const ir::Graph& graph, std::span<const ir::Dim> shape);

/// The dimension that two broadcast to: equal ones, or one is the constant 1. Throws (invalid_argument) for unequal constants,
/// (unsupported) where neither equality nor 1 can be proven, naming the symbols.
ir::Dim broadcast(const ir::Graph& graph, const ir::Dim& a, const ir::Dim& b);
ir::Shape broadcast(const ir::Graph& graph, std::span<const ir::Dim> a, std::span<const ir::Dim> b);
/// Throws as `broadcast` does unless the dimensions are equal.
void require_equal(const ir::Graph& graph, const ir::Dim& a, const ir::Dim& b, std::string_view what);

/// What a dimension can be, given the ranges of the symbols; saturated at the ends of int64.
struct Interval {
  std::int64_t least = 0, most = 0;
};
Interval range(const ir::Graph& graph, const ir::Dim& dim);
/// max(dim, least) and min(max(dim, least), most), without the parts that the ranges of the symbols make idle.
ir::Dim at_least(const ir::Graph& graph, const ir::Dim& dim, const ir::Dim& least);
ir::Dim clamped(const ir::Graph& graph, const ir::Dim& dim, const ir::Dim& least, const ir::Dim& most);
/// The k-th new symbol that a node defines because its size depends on data. The builder adds it to the graph.
ir::Dim fresh_symbol(const OpQuery& q, std::size_t k = 0);

/// A dimension index in [-rank, rank) as one in [0, rank). A 0-d tensor takes 0 and -1.
std::int64_t wrap_dim(std::int64_t dim, std::size_t rank);
/// The attribute `name` as wrapped, sorted, distinct dimensions; absent or empty means all.
std::vector<std::size_t> wrapped_dims(const OpQuery& q, std::size_t rank, std::string_view name = "dim");

/// The number of operands must be in [least, most].
void require_operands(const OpQuery& q, std::size_t least, std::size_t most);
/// All operands from `first` on that are no literals must have one dtype; gives it. When all are literals: the first one's.
DType shared_dtype(const OpQuery& q, std::size_t first = 0);
/// The shape that operands from `first` on broadcast to, literals aside.
ir::Shape broadcast_operands(const OpQuery& q, std::size_t first = 0);
/// The device that the operands are on: of the first tensor that is no host scalar, else the host.
ir::Device device(const OpQuery& q);
/// What is wrong where two operands are on different devices and neither is a host scalar: "operand 1 is …"; else empty.
std::string device_conflict(const OpQuery& q);
/// The device that a node computes on: that of its results.
ir::Device device_of(const ir::Graph& graph, const ir::Node& node);

/// One row-major tensor on the device of the operands.
Types one(const OpQuery& q, DType dtype, ir::Shape shape);
/// The same for an op that creates: on the device that the attribute `device` asks for.
Types created(const OpQuery& q, DType dtype, ir::Shape shape);

/// Whether a size is a multiple of another one. Asks where that is not known.
bool is_divisible(const ir::Dim& size, const ir::Dim& by);

}  // namespace tenon::ops::infer
